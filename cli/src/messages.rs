//! Messages for errors of the engine. If the advice of the engine names a function of the library, the program gives
//! its own advice, which names commands and options.

use duramen::Error;

/// The option in the engine's error for a database that cannot be converted.
pub(crate) const DATABASE_TO_CONVERT: &str = "database to convert";

/// The message for an error, as one line, with advice for the command line.
pub(crate) fn message(error: &Error) -> String {
    if let Error::Option { option, value, expected } = error {
        return refused(option, value, expected);
    }
    match advice(error) {
        Some(advice) => format!("{}{advice}", what(error)),
        None => error.to_string(),
    }
}

/// The message of the engine, without its advice.
fn what(error: &Error) -> String {
    let message = error.to_string();
    message.strip_suffix(error.advice()).map_or(message.clone(), str::to_owned)
}

/// The advice for an error, if it differs from the advice of the library.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::NotFound { .. } => ": load, put and push create one, and restore creates one from a dump",
        Error::Exists { .. } => ": remove it first, or choose another name",
        Error::Locked { .. } => ": wait for the other process to end, or stop it",
        Error::NeedsRecovery { .. } => {
            ": any command recovers it, if run by a user who can write to the file and its folder"
        }
        Error::FormatVersion { .. } => {
            ": dump it with a version of Duramen that reads this format, and restore the dump with this version"
        }
        Error::MissingLog { .. } => {
            ": put the log back beside it, restore a backup, or save the state of the last checkpoint with `duramen dump --skip-damaged`"
        }
        Error::Corrupt { .. } | Error::CorruptLog { .. } | Error::CorruptMeta { .. } => {
            "; restore a backup, or save what is left with `duramen dump --skip-damaged`"
        }
        Error::TableType { part: "keys", .. } => ": leave out --key-type, or use another table",
        Error::TableType { .. } => ": leave out --value-type, or use another table",
        Error::Encoding { .. } => "; print them with --hex",
        Error::ReadOnly => "",
        Error::Poisoned { .. } => {
            ": remove the cause, such as a full device, and run the command again; if the database is damaged, save what is left with `duramen dump --skip-damaged`"
        }
        Error::TooManyNumbers { .. } => ": query a smaller range at a time, or raise the limit with --max-numbers",
        Error::CacheFull { .. } => ": use a larger --cache",
        Error::TooManyPages { .. } => ": convert it with `duramen compact` and a larger --page-size",
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            ": run the command as a user who can read and write the file and its folder"
        }
        Error::TooManyTables => ": make a new database with `duramen dump` and `duramen restore`",
        _ => return None,
    })
}

/// The message for an option with a wrong value.
fn refused(option: &str, value: &str, expected: &str) -> String {
    if option == "dictionary" {
        return "--dictionary needs --compress zstd: name this method, or leave out --dictionary".to_owned();
    }
    let name = match option {
        "page_size" => "--page-size",
        "keys" => "--keys",
        "codec" => "--codec",
        "separators" => "--separators",
        "compression" => "--compress",
        "target" => "--target",
        "overflow" => "--overflow",
        "auto_increment" => "--auto-increment",
        "key_width" => "the length of keys",
        "value_width" => "the length of values",
        "table name" => "the name of a table",
        "path" => "the path of a database",
        DATABASE_TO_CONVERT => "the database to convert",
        "type" => "a type of keys or values",
        "key type" => "the type of keys",
        other => other,
    };
    format!("{name} cannot be {value}: it must be {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::base::PageId;

    #[test]
    fn messages_name_the_options_of_the_command_line() {
        let refused = |option, value: &str, expected: &str| {
            message(&Error::Option { option, value: value.into(), expected: expected.into() })
        };
        assert_eq!(refused("page_size", "7", "16"), "--page-size cannot be 7: it must be 16");
        assert!(refused("dictionary", "true", "false").starts_with("--dictionary needs --compress zstd"));
        assert_eq!(
            refused("table name", "empty", "1 to 9 bytes long"),
            "the name of a table cannot be empty: it must be 1 to 9 bytes long"
        );
    }

    #[test]
    fn advice_names_commands_and_options() {
        let path = || "t.duramen".into();
        for (error, advised) in [
            (Error::NotFound { path: path() }, "restore creates one"),
            (Error::Exists { path: path() }, "remove it first"),
            (Error::NeedsRecovery { path: path() }, "any command recovers it"),
            (Error::CacheFull { frames: 7 }, "--cache"),
            (Error::TooManyTables, "`duramen restore`"),
        ] {
            let text = message(&error);
            assert!(text.contains(advised) && text.starts_with(&error.without_advice()), "{text}");
            assert!(!text.contains(error.advice()), "{text}");
            assert!(!text.contains("open it") && !text.contains("create it"), "{text}");
        }
        assert_eq!(message(&Error::NoTable { table: "t".into() }), "there is no table \"t\"");
        let source = std::io::ErrorKind::PermissionDenied.into();
        let refused = message(&Error::Io { action: "cannot open", path: path(), source });
        assert!(refused.contains("t.duramen: permission denied: run the command as a user who"), "{refused}");
        let damaged = Error::corrupt(PageId(7), "its checksum is wrong");
        assert_eq!(
            message(&damaged),
            "page 7 is corrupt: its checksum is wrong; restore a backup, or save what is left with `duramen dump --skip-damaged`"
        );
    }
}
