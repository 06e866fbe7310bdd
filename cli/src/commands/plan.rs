//! The options `--strategy`, `--compress`, `--target`, `--overflow`, `--dictionary`, `--table` and `--group`.

use crate::args::PlanArgs;
use crate::failure::{Failure, Result};
use duramen::db::{Compression, CompressionPlan, Overflow, Strategy, Target};

/// True if there is one of the options.
pub(super) fn is_given(plan: &PlanArgs) -> bool {
    plan.strategy.is_some()
        || plan.compress.is_some()
        || plan.target.is_some()
        || plan.overflow.is_some()
        || plan.dictionary
        || !plan.table.is_empty()
        || !plan.group.is_empty()
}

/// The plan of these options, with this strategy if the options name none.
pub(super) fn of(plan: &PlanArgs, default: Strategy) -> Result<CompressionPlan> {
    let strategy = plan.strategy.unwrap_or(default);
    let compression = match plan.compress {
        Some(Compression::None) => {
            let why = "--compress none is no plan: use --strategy none to decompress tables, or name a method";
            return Err(Failure::Usage(why.to_owned()));
        }
        Some(compression) => compression,
        None if plan.dictionary => dictionary_compression()?,
        None => Compression::Lz4,
    };
    let groups = plan.group.iter().map(|tables| tables.split(','));
    let new = CompressionPlan::new(strategy, compression).target(plan.target.unwrap_or_default());
    let new = new.overflow(plan.overflow.unwrap_or_default()).dictionary(plan.dictionary);
    let new = plan.table.iter().fold(new, |plan, table| plan.table(table.as_str()));
    Ok(groups.fold(new, CompressionPlan::group))
}

/// The compression that `--dictionary` means without `--compress`.
pub(super) fn dictionary_compression() -> Result<Compression> {
    Ok("zstd".parse()?)
}

/// The compression of a table and, if it may have a dictionary, that.
pub(super) fn compression_name(compression: Compression, dictionary: bool) -> String {
    if dictionary { format!("{compression} dictionary") } else { compression.to_string() }
}

/// The target of a table and, if pages that miss it are split, that.
pub(super) fn target_name(target: Target, overflow: Overflow) -> String {
    match overflow {
        Overflow::Spill => target.to_string(),
        Overflow::Split => format!("{target} {overflow}"),
    }
}
