//! The engine's messages and documentation fit every program that uses it: they name no option and no command of a
//! program.

use crate::tokens::{files, read};
use proc_macro2::{TokenStream, TokenTree};
use std::path::Path;

/// The texts that name an option, such as `--keys`, or a command of the program `duramen`.
fn named_options(stream: &TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in stream.clone() {
        match token {
            TokenTree::Group(group) => found.extend(named_options(&group.stream())),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let words = text.split(|c: char| c.is_whitespace() || "\"`'(".contains(c));
                let mut options = words.filter(|word| {
                    word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
                });
                let command = ["dump", "restore", "check", "load", "query"]
                    .iter()
                    .any(|command| text.contains(&format!("`duramen {command}")));
                if text.contains('"') && (options.next().is_some() || command) {
                    found.push(format!("{}: {text}", literal.span().start().line));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn no_text_of_the_engine_names_an_option_of_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let named = files(&root)
        .into_iter()
        .flat_map(|file| named_options(&read(&file)).into_iter().map(move |what| format!("{}:{what}", file.display())));
    let named: Vec<String> = named.collect();
    assert!(named.is_empty(), "{} texts name options:\n{}", named.len(), named.join("\n"));
}

#[test]
fn options_in_texts_are_found_however_they_are_written() {
    let named = |source: &str| named_options(&source.parse().unwrap());
    for source in [
        "const X: &str = \"use --page-size\";",
        "const X: &str = \"(`--keys plain`)\";",
        "fn f() { bail!(\"{x}: run `duramen check`\") }",
        "/// As `--cache` does.\nfn f() {}",
    ] {
        assert_eq!(named(source).len(), 1, "{source}: {:?}", named(source));
    }
    for source in ["// --keys\nfn f() { x -= --y; }", "const X: &str = \"a -- b, ---\";", "const X: u8 = b'-';"] {
        assert_eq!(named(source), Vec::<String>::new(), "{source}");
    }
}
