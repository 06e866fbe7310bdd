//! The engine's errors in the words of the command line: where the engine names a function or an option of the library, this
//! names what the program has for it. What is wrong is said by the engine alone.

use duramen::Error;

/// An error in one line, with what to do about it here.
pub(crate) fn words(error: &Error) -> String {
    if let Error::Option { option, value, expected } = error {
        return refused(option, value, expected);
    }
    match advice(error) {
        Some(advice) => format!("{}{advice}", error.without_advice()),
        None => error.to_string(),
    }
}

/// What to do about an error, where the library has another way.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::NotFound { .. } => ": load, put and push make one, and restore makes one from a dump",
        Error::Exists { .. } => ": remove it first, or give the new one another name",
        Error::Locked { .. } => ": wait for the other process, or end it",
        Error::NeedsRecovery { .. } => {
            ": whoever may write to it and to its folder must run any command on it once, which recovers it"
        }
        Error::TableType { part: "keys", .. } => ": leave --key-type out, or take another table",
        Error::TableType { .. } => ": leave --value-type out, or take another table",
        Error::Encoding { .. } => "; --hex shows them",
        Error::ReadOnly => "",
        Error::Poisoned { .. } => ": what is committed stays readable; once the cause is mended, run the command again",
        Error::TooManyNumbers { .. } => ": ask for a smaller range at a time, or for more with --most-numbers",
        Error::CacheFull { .. } => ": give it more with --cache",
        Error::TooManyPages { .. } => ": dump it, and restore the dump with a larger --page-size",
        _ => return None,
    })
}

/// An option that cannot be as it was given.
fn refused(option: &str, value: &str, expected: &str) -> String {
    let name = match option {
        "page_size" => "--page-size",
        "keys" => "--keys",
        "codec" => "--codec",
        "separators" => "--separators",
        "auto_increment" => "--auto-increment",
        "key_width" => "the length of keys",
        "value_width" => "the length of values",
        "table name" => "the name of a table",
        "path" => "the path of a database",
        "type" => "a type of keys or values",
        "key type" => "the type of keys",
        other => other,
    };
    format!("{name} cannot be {value}: it must be {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_as_the_command_line_has_them() {
        let refused = |option, value: &str, expected: &str| {
            words(&Error::Option { option, value: value.into(), expected: expected.into() })
        };
        assert_eq!(refused("page_size", "7", "16"), "--page-size cannot be 7: it must be 16");
        assert_eq!(
            refused("table name", "empty", "1 to 9 bytes long"),
            "the name of a table cannot be empty: it must be 1 to 9 bytes long"
        );
    }

    #[test]
    fn what_to_do_is_something_that_the_program_can() {
        let path = || "t.duramen".into();
        for (error, advised) in [
            (Error::NotFound { path: path() }, "restore makes one"),
            (Error::Exists { path: path() }, "remove it first"),
            (Error::NeedsRecovery { path: path() }, "run any command"),
            (Error::CacheFull { frames: 7 }, "--cache"),
        ] {
            let told = words(&error);
            assert!(told.contains(advised) && told.starts_with(&error.without_advice()), "{told}");
            assert!(!told.contains("open it") && !told.contains("create it"), "{told}");
        }
        assert_eq!(words(&Error::NoTable { table: "t".into() }), "there is no table \"t\"");
    }
}
