//! A layer uses only the layers below it. The compiler does not check this inside one crate, so this test does. It
//! reads the tokens of every file and resolves each path that begins with `crate`, `self` or `super` to a folder: in a
//! `use`, an expression, a macro or a test module. Comments do not count.

mod crates;
mod key_lists;
mod lengths;
mod messages;
mod tokens;
mod widths;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokens::{files, idents, is_ident, is_path_separator, is_punct, module, paths, read};

/// Each layer, lowest first, and the others that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("page", &["base"]),
    ("tree", &["base", "page"]),
    ("io", &["base"]),
    ("store", &["base", "page", "io"]),
    ("log", &["base", "io"]),
    ("txn", &["base", "page", "tree", "io", "store", "log"]),
    ("db", &["base", "page", "tree", "io", "store", "log", "txn"]),
    ("query", &["base", "page", "tree", "io", "store", "log", "txn", "db"]),
];

/// The items of another layer that a layer may use (except its tests), where they are not all that the other exports.
const ITEMS: &[(&str, &str, &[&str])] = &[
    (
        "tree",
        "page",
        &[
            "KeyListKind",
            "KeyPlace",
            "KeyWindow",
            "NewEntry",
            "Page",
            "PageBuilder",
            "PageKind",
            "PageOp",
            "PageSpec",
            "Record",
            "RecordListKind",
            "SeparatorRule",
            "choose_split",
            "heap_number",
            "heap_page_builder",
            "out_of_line_image",
            "run_capacity",
            "run_page",
            "would_insert",
        ],
    ),
    ("store", "page", &["Page", "map_page_size", "unpack", "unpack_within"]),
    (
        "txn",
        "page",
        &[
            "IntegerEncoding",
            "KeyListKind",
            "NewEntry",
            "Page",
            "PageKind",
            "PageOp",
            "Record",
            "RecordListKind",
            "SeparatorRule",
            "apply",
            "insert_run",
            "map_bits",
            "map_page",
            "run_capacity",
            "run_page",
            "set_lsn",
        ],
    ),
    (
        "txn",
        "tree",
        &[
            "KeyRange",
            "LeafCopy",
            "LeafHint",
            "LeafReadAhead",
            "LeafTarget",
            "PageRead",
            "PageWrite",
            "Put",
            "RangeRemoval",
            "Removal",
            "RemovedRange",
            "Tree",
            "TreeLayout",
        ],
    ),
    (
        "db",
        "page",
        &[
            "BlockRule",
            "Codec",
            "KeyLayout",
            "KeyListKind",
            "KeyProperties",
            "Page",
            "PageKind",
            "Record",
            "RecordListKind",
            "SeparatorRule",
            "unpack",
        ],
    ),
    ("query", "page", &["KeyWindow", "Page", "Record"]),
    ("query", "tree", &[]),
    ("query", "io", &[]),
    ("query", "store", &[]),
    ("query", "log", &[]),
    ("query", "txn", &["Cursor", "Engine", "KeyRange", "Latched", "ReadView", "VisibleEntries", "large"]),
    ("query", "db", &["ReadOnlyTable", "ReadOnlyUntypedTable", "encode_bounds", "types"]),
];

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(name, _)| *name == layer).map(|(_, allowed)| *allowed)
}

/// Names that the crate's root re-exports, each with the layer that it comes from.
type Exports = BTreeMap<String, String>;

#[test]
fn no_layer_uses_one_that_is_not_below_it() {
    let mut wrong = Vec::new();
    check_all(|file, check| {
        wrong.extend(check.wrong.into_iter().map(|what| format!("{}:{what}", file.display())));
    });
    assert!(wrong.is_empty(), "{} uses against the order of the layers:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_item_that_a_layer_may_use_is_used() {
    let mut used = BTreeSet::new();
    check_all(|_, check| used.extend(check.used.into_iter().map(|(of, item)| (check.layer.clone(), of, item))));
    let rules = ITEMS.iter().flat_map(|(layer, of, items)| items.iter().map(|item| (*layer, *of, *item)));
    let unused: Vec<_> = rules
        .filter(|(layer, of, item)| !used.contains(&(layer.to_string(), of.to_string(), item.to_string())))
        .map(|(layer, of, item)| format!("{layer} does not use {item} of {of}"))
        .collect();
    assert!(unused.is_empty(), "the table of items has more than is used:\n{}", unused.join("\n"));
}

#[test]
fn the_layer_table_is_ordered_and_transitive() {
    for (at, (layer, uses)) in ALLOWED.iter().enumerate() {
        for used in *uses {
            let below = ALLOWED[..at].iter().find(|(name, _)| name == used);
            let (_, indirect) = below.unwrap_or_else(|| panic!("{layer} uses {used}, which is not below it"));
            assert!(indirect.iter().all(|name| uses.contains(name)), "{layer} uses {used} but not all below it");
        }
    }
}

/// The names that the root re-exports. The other names of a path count too, which does no harm.
fn exports(root: &TokenStream) -> Exports {
    let tokens: Vec<TokenTree> = root.clone().into_iter().collect();
    let mut exports = Exports::new();
    for statement in tokens.split(|token| is_punct(token, ';')) {
        let Some(start) = statement.iter().position(|token| is_ident(token, "use")) else { continue };
        let mut names = Vec::new();
        idents(&statement[start + 1..], &mut names);
        let mut names = names.into_iter().skip_while(|name| name == "crate" || name == "self");
        let Some(layer) = names.next().filter(|layer| allowed(layer).is_some()) else { continue };
        exports.extend(names.map(|name| (name, layer.clone())));
    }
    exports
}

/// Looks at the file of `module`.
fn check<'a>(module: &[String], file: &TokenStream, exports: &'a Exports) -> Check<'a> {
    let layer = module[0].clone();
    let mut check = Check { layer, module: module.to_vec(), exports, wrong: Vec::new(), used: BTreeSet::new() };
    check.tokens(file);
    check
}

/// Looks at all files of all layers. Calls `visit` with each file and what was found in it.
fn check_all(mut visit: impl FnMut(&Path, Check<'_>)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let exports = exports(&read(&root.join("lib.rs")));
    let mut layers = 0;
    for entry in std::fs::read_dir(&root).unwrap() {
        let folder = entry.unwrap().path();
        if folder.is_dir() {
            layers += 1;
            for file in files(&folder) {
                visit(&file, check(&module(file.strip_prefix(&root).unwrap()), &read(&file), &exports));
            }
        }
    }
    assert!(layers > 1, "the layers are not where this test looks for them");
}

struct Check<'a> {
    layer: String,
    /// The module of the tokens.
    module: Vec<String>,
    exports: &'a Exports,
    wrong: Vec<String>,
    /// The items that the file may use and uses, each with its layer.
    used: BTreeSet<(String, String)>,
}

impl Check<'_> {
    fn wrong(&mut self, at: &TokenTree, what: impl std::fmt::Display) {
        self.wrong.push(format!("{}: {} {what}", at.span().start().line, self.layer));
    }

    /// Looks at all tokens of a group, or of a file.
    fn tokens(&mut self, stream: &TokenStream) {
        let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => {
                    let before = at.checked_sub(1).map(|before| &tokens[before]);
                    let is_visibility = group.delimiter() == Delimiter::Parenthesis
                        && before.is_some_and(|before| is_ident(before, "pub"));
                    let is_attribute = group.delimiter() == Delimiter::Bracket
                        && before.is_some_and(|before| is_punct(before, '#') || is_punct(before, '!'));
                    if is_attribute && group.stream().into_iter().next().is_some_and(|first| is_ident(&first, "path")) {
                        self.wrong(token, "takes a module from elsewhere by #[path]");
                    }
                    if !is_visibility {
                        self.tokens(&group.stream());
                    }
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                        (tokens.get(at + 1), tokens.get(at + 2))
                    {
                        self.module.push(name.to_string());
                        self.tokens(&body.stream());
                        self.module.pop();
                        at += 2;
                    }
                }
                TokenTree::Ident(ident) if ident == "extern" => {
                    if let [next, own, ..] = &tokens[at + 1..]
                        && is_ident(next, "crate")
                        && is_ident(own, "self")
                    {
                        self.wrong(token, "gives the crate another name");
                        at += 2;
                    }
                }
                TokenTree::Ident(ident) if ident == "crate" || ident == "self" || ident == "super" => {
                    at = self.path(&tokens, at, self.module.clone());
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Follows the path that begins at token `at` of `tokens` in the module `place`; gives its last token.
    fn path(&mut self, tokens: &[TokenTree], at: usize, mut place: Vec<String>) -> usize {
        let mut at = at;
        loop {
            match &tokens[at] {
                TokenTree::Ident(ident) if ident == "crate" => place.clear(),
                TokenTree::Ident(ident) if ident == "self" => {}
                TokenTree::Ident(ident) if ident == "super" => {
                    place.pop();
                }
                TokenTree::Ident(ident) => {
                    if place.is_empty() {
                        self.uses(tokens, at, &ident.to_string());
                    }
                    return at;
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let mut start = 0;
                    for branch in inner.split(|token| is_punct(token, ',')) {
                        if !branch.is_empty() {
                            self.path(&inner[..start + branch.len()], start, place.clone());
                        }
                        start += branch.len() + 1;
                    }
                    return at;
                }
                other => {
                    if place.is_empty() && is_punct(other, '*') {
                        self.wrong(other, "takes all names of the crate's root");
                    }
                    return at;
                }
            }
            if !is_path_separator(&tokens[at + 1..]) || tokens.len() <= at + 3 {
                if place.is_empty() {
                    self.wrong(&tokens[at], "names the crate's root itself");
                }
                return at;
            }
            at += 3;
        }
    }

    /// Judges the use of `name`, which stands in the crate's root, at token `at` of `tokens`.
    fn uses(&mut self, tokens: &[TokenTree], at: usize, name: &str) {
        let (tokens, at) = (&tokens[at..], &tokens[at]);
        let layer = self.exports.get(name).map_or(name, String::as_str).to_owned();
        let own = self.layer.clone();
        match (allowed(&own), allowed(&layer)) {
            (None, _) => self.wrong(at, "is not in the table of layers"),
            (_, None) => self.wrong(at, format_args!("uses {name}, which belongs to no layer")),
            (Some(below), _) if own != layer && !below.contains(&layer.as_str()) => {
                self.wrong(at, format_args!("uses {layer}, which is not below it"));
            }
            _ => self.uses_items(tokens, &layer, layer != name),
        }
    }

    /// Judges the items of `layer` that the path at the front of `tokens` names. A path that is `exported` by the
    /// crate's root begins with the item.
    fn uses_items(&mut self, tokens: &[TokenTree], layer: &str, exported: bool) {
        let rule = ITEMS.iter().find(|(user, used, _)| *user == self.layer && used == &layer);
        let Some((_, _, items)) = rule.filter(|_| !self.module.iter().any(|module| module == "tests")) else { return };
        for path in paths(tokens, 0) {
            match path.get(usize::from(!exported)) {
                Some(item) if items.contains(&item.as_str()) => {
                    self.used.insert((layer.to_owned(), item.clone()));
                }
                Some(item) => self.wrong(&tokens[0], format_args!("uses {item} of {layer}, which it may not")),
                None => self.wrong(&tokens[0], format_args!("takes {layer} as a whole")),
            }
        }
    }
}

/// The errors in `source` as the file of `module`.
fn judge(module: &str, source: &str) -> Vec<String> {
    let root = "pub mod base; pub mod db; pub use base::{Error, Result as Outcome}; pub use crate::db::Database;";
    let module: Vec<String> = module.split("::").map(str::to_owned).collect();
    check(&module, &source.parse().unwrap(), &exports(&root.parse().unwrap())).wrong
}

#[test]
fn uses_of_lower_layers_pass() {
    for (module, source) in [
        ("tree", "use crate::page::{Page, PageOp}; use crate::{Error, base::Lsn};"),
        ("tree::cursor", "use super::Tree; use super::super::page::Page; fn f() -> crate::Outcome { self.go() }"),
        ("db", "pub(crate) fn f() { crate::txn::begin(); crate::Database::new() } pub(in crate::db) struct S;"),
        ("page::keys", "mod tests { use super::*; use super::super::Page; use super::super::super::base::Lsn; }"),
        ("base", "// use crate::db;\n/// [`crate::db::open`]\nfn f() -> &'static str { \"crate::db\" }"),
        ("log", "mod a { mod b { use super::super::super::io::Disk; } } use self::a::db;"),
    ] {
        assert_eq!(judge(module, source), Vec::<String>::new(), "{module}: {source}");
    }
}

#[test]
fn every_form_of_a_use_of_a_higher_layer_is_detected() {
    for (module, source) in [
        ("tree", "use crate::store::Pool;"),
        ("tree", "use crate::{base::Lsn, store};"),
        ("tree", "use crate::{base::{self, Lsn}, {db::Database}};"),
        ("tree", "use super::store;"),
        ("tree::cursor", "use super::super::store::Pool;"),
        ("tree::cursor", "use super::{super::store::Pool};"),
        ("tree::cursor", "use self::super::super::store::Pool;"),
        ("tree::cursor", "fn f() { if true { super::super::txn::begin() } }"),
        ("tree", "mod tests { use super::super::io::Disk; }"),
        ("page", "fn f() -> crate::db::Database { crate::Error::from(x) }"),
        ("page", "fn f() { crate::Database::new() }"),
        ("page", "macro_rules! m { () => { $crate::tree::Tree } }"),
        ("page", "const X: &[u8] = matches!(x, crate::tree::X);"),
        ("io", "use crate::page::Page;"),
        ("log", "use crate::store;"),
        ("store", "use crate::tree::PageRead;"),
        ("base", "use crate::*;"),
        ("base", "use super::*;"),
        ("base", "use crate as root;"),
        ("base::ids", "use super::super as root;"),
        ("base", "use crate::{self as root};"),
        ("base", "extern crate self as duramen;"),
        ("base", "#[path = \"../db/mod.rs\"] mod other;"),
        ("base", "use crate::nowhere;"),
        ("unknown", "use crate::base;"),
    ] {
        assert_eq!(judge(module, source).len(), 1, "{module}: {source}: {:?}", judge(module, source));
    }
    assert_eq!(judge("io", "\nuse crate::log;"), ["2: io uses log, which is not below it"]);
}

#[test]
fn every_form_of_a_forbidden_item_use_is_detected() {
    for (module, source) in [
        ("query", "use crate::page::PageOp;"),
        ("query", "use crate::{page::{Page, PageOp}, db::types::Key};"),
        ("query", "fn f() { crate::page::apply(x) }"),
        ("query", "use crate::page;"),
        ("query", "use crate::page::{self, Page};"),
        ("query", "use crate::page::*;"),
        ("query::run", "use super::super::db::WriteTransaction;"),
        ("query", "use crate::Database;"),
        ("query", "use crate::store::Pool;"),
        ("db::check", "use crate::page::PageOp;"),
        ("store", "use crate::page::PageBuilder;"),
        ("tree", "use crate::page::compare_images;"),
        ("txn::commit", "use crate::page::{PageOp, PageBuilder};"),
        ("txn::commit", "fn f() { crate::page::choose_split(x) }"),
        ("txn", "use crate::tree::BulkLoader;"),
    ] {
        assert_eq!(judge(module, source).len(), 1, "{module}: {source}: {:?}", judge(module, source));
    }
    for (module, source) in [
        ("query", "use crate::page::{KeyWindow, Page as P}; use crate::db::{ReadOnlyTable, types::{Key, Value}};"),
        ("query::tests", "use crate::Database; use crate::page::PageOp;"),
        ("query", "mod tests { use crate::db::Database; }"),
        ("tree", "use crate::page::PageOp;"),
    ] {
        assert_eq!(judge(module, source), Vec::<String>::new(), "{module}: {source}");
    }
    assert_eq!(judge("query", "\nuse crate::page::PageOp;"), ["2: query uses PageOp of page, which it may not"]);
}
