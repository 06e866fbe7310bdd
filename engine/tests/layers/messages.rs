//! The engine's messages and documentation fit every program that uses it: they name no option and no command of a
//! program. Each message of the engine, the codecs, the queries and the program is in one place, and no two of a crate
//! begin alike.

use crate::tokens::{files, is_ident, is_punct, read};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
                if text.contains('"') && (options.next().is_some() || command || names_a_dump(&text)) {
                    found.push(format!("{}: {text}", literal.span().start().line));
                }
            }
            _ => {}
        }
    }
    found
}

/// The engine has no dumps. A user restores backups in any way.
fn names_a_dump(text: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    (0..words.len()).any(|at| match words[at] {
        "dump" | "dumps" | "dumped" | "dumping" => true,
        "restore" | "restored" | "restoring" => words.get(at + 1..at + 3) != Some(&["a", "backup"]),
        _ => false,
    })
}

/// The messages among these tokens: texts of at least four words, except in tests and the documentation. Of attributes
/// only those of errors have messages.
fn messages(stream: &TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    let (mut of_tests, mut generics) = (false, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if is_attribute(&tokens[..at], group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                match inner.first() {
                    Some(name) if is_ident(name, "cfg") => {
                        of_tests |= is_for_tests(&inner);
                        generics = 0;
                    }
                    Some(name) if is_ident(name, "error") && !of_tests => messages(&group.stream(), found),
                    _ => {}
                }
            }
            TokenTree::Group(group) => {
                if !of_tests {
                    messages(&group.stream(), found);
                }
                of_tests &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' => of_tests = false,
                '<' => generics += 1,
                '>' if !is_arrow(&tokens[..at]) => generics -= 1,
                // A field, a variant or an arm ends at a comma, which is not one between generic arguments. Of an item
                // for tests with a `where` clause, or with a comparison, the end can be found in the wrong place.
                ',' => of_tests &= generics > 0,
                _ => {}
            },
            TokenTree::Literal(literal) if !of_tests => {
                let text = literal.to_string();
                let words = text.split_whitespace().filter(|word| word.contains(|c: char| c.is_alphabetic()));
                if text.contains('"') && words.count() >= 4 {
                    found.push((literal.span().start().line, text));
                }
            }
            _ => {}
        }
    }
}

/// True if a `>` after these tokens is the end of `->` or `=>`.
fn is_arrow(before: &[TokenTree]) -> bool {
    before.last().is_some_and(|last| is_punct(last, '-') || is_punct(last, '='))
}

fn is_attribute(before: &[TokenTree], group: &Group) -> bool {
    let mark_before = match before {
        [.., mark, not] if is_punct(not, '!') => Some(mark),
        [.., mark] => Some(mark),
        [] => None,
    };
    group.delimiter() == Delimiter::Bracket && mark_before.is_some_and(|mark| is_punct(mark, '#'))
}

/// True for `cfg(test)`, and for `cfg(all(test, ...))`.
fn is_for_tests(attribute: &[TokenTree]) -> bool {
    attribute.iter().any(|token| match token {
        TokenTree::Group(group) => is_for_tests(&group.stream().into_iter().collect::<Vec<_>>()),
        other => is_ident(other, "test"),
    }) && !attribute.iter().any(|token| is_ident(token, "not"))
}

/// The places of the messages in these files, by the part of the message that `part` returns.
fn places_by(
    part: impl Fn(&str) -> Option<String>,
    files: impl Iterator<Item = (PathBuf, TokenStream)>,
) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, tokens) in files {
        let mut found = Vec::new();
        messages(&tokens, &mut found);
        for (line, text) in found {
            if let Some(part) = part(&text) {
                places.entry(part).or_default().push(format!("{}:{line}", file.display()));
            }
        }
    }
    places
}

/// The parts that are in several places, each with them.
fn several(places: BTreeMap<String, Vec<String>>) -> Vec<String> {
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    several.map(|(text, places)| format!("{text}: {}", places.join(", "))).collect()
}

/// The messages that are in these files several times, each with its places.
fn repeated(files: impl Iterator<Item = (PathBuf, TokenStream)>) -> Vec<String> {
    several(places_by(|text| Some(text.to_owned()), files))
}

/// Messages may begin with these words several times, for the reason beside them.
const MAY_BEGIN_ALIKE: [(&str, &str); 1] =
    [("splitting its pages makes no room", "an insertion and a removal fail for one reason; the end tells them apart")];

/// The first six words of a message, or all of them. Placeholders and punctuation do not count. `None` if fewer than
/// four words are left.
fn beginning(text: &str) -> Option<String> {
    let mut outside = String::new();
    let mut depth = 0;
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        outside.push(if depth == 0 && c != '}' { c } else { ' ' });
    }
    let words = outside.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words: Vec<&str> = words.filter(|word| word.contains(|c: char| c.is_alphabetic())).collect();
    (words.len() >= 4).then(|| words[..words.len().min(6)].join(" "))
}

/// The beginnings that several messages of these files have, each with its places.
fn twins(files: impl Iterator<Item = (PathBuf, TokenStream)>) -> Vec<String> {
    let mut places = places_by(beginning, files);
    places.retain(|words, _| MAY_BEGIN_ALIKE.iter().all(|(allowed, _)| allowed != words));
    several(places)
}

/// The files of each crate whose messages are examined, without its tests.
fn crates() -> impl Iterator<Item = Vec<(PathBuf, TokenStream)>> {
    let is_test = |file: &PathBuf| {
        file.iter().any(|part| part == "tests" || part.to_str().is_some_and(|name| name.ends_with("tests.rs")))
    };
    let folders = [("src", 100), ("../cli/src", 30), ("../codec/src", 15), ("../query/src", 3)];
    folders.into_iter().map(move |(folder, least)| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files: Vec<PathBuf> = files(&root).into_iter().filter(|file| !is_test(file)).collect();
        assert!(files.len() > least, "the code is not where this test looks for it: {folder}");
        files.into_iter().map(|file| (file.clone(), read(&file))).collect()
    })
}

#[test]
fn each_message_of_a_crate_is_in_one_place() {
    for files in crates() {
        let repeated = repeated(files.into_iter());
        assert!(repeated.is_empty(), "{} messages are in several places:\n{}", repeated.len(), repeated.join("\n"));
    }
}

#[test]
fn no_two_messages_of_a_crate_begin_with_the_same_words() {
    let mut alike = Vec::new();
    for files in crates() {
        let twins = twins(files.clone().into_iter());
        assert!(twins.is_empty(), "{} beginnings are in several places:\n{}", twins.len(), twins.join("\n"));
        alike.extend(several(places_by(beginning, files.into_iter())));
    }
    for (words, why) in MAY_BEGIN_ALIKE {
        assert!(alike.iter().any(|found| found.starts_with(words)), "no longer needed: {words} ({why})");
    }
}

#[test]
fn messages_that_begin_alike_are_detected() {
    let twins = |source: &str| twins(std::iter::once((PathBuf::from("x.rs"), source.parse().unwrap())));
    for source in [
        "fn f() { a(format!(\"key list {:?} is unknown\")); b(format!(\"key list {keys:?} is unknown\")) }",
        "fn f() { a(\"the part of slot 7 does not match\"); b(\"the part of slot 7 does not end\") }",
        "fn f() { a(\"no space left on the device of {}: {why}\"); b(\"no space left on the device: {what}\") }",
        "fn f() { a(\"table \\\"{t}\\\" is not there\"); b(\"table {} is not there\") }",
    ] {
        assert_eq!(twins(source).len(), 1, "{source}: {:?}", twins(source));
    }
    for source in [
        "fn f() { a(\"the part of slot {slot} does end\"); b(\"the part of slot {slot} does not end\") }",
        "fn f() { a(\"{path} is damaged: {page}{what}\"); b(\"{} is damaged: {what}; {advice}\") }",
        "fn f() { a(\"splitting its pages makes no room for it\"); b(\"splitting its pages makes no room now\") }",
    ] {
        assert_eq!(twins(source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn every_form_of_a_repeated_message_is_detected() {
    let repeated = |source: &str| repeated(std::iter::once((PathBuf::from("x.rs"), source.parse().unwrap())));
    for source in [
        "fn f() { a(\"it is cut short\"); b(\"it is cut short\") }",
        "fn f() { a(format!(\"page {id} is cut short\")) } mod m { const X: &str = \"page {id} is cut short\"; }",
        "enum E { #[error(\"it is cut short\")] A, #[error(\"it is cut short\")] B }",
        "#[cfg(not(test))] fn f() { a(\"it is cut short\") } const X: &str = \"it is cut short\";",
        "#[cfg(test)] mod tests; fn f() { a(\"it is cut short\"); b(\"it is cut short\") }",
        "#[cfg(test)] fn t() {} fn f() { a(\"it is cut short\"); b(\"it is cut short\") }",
        "enum E { #[cfg(test)] T, #[error(\"it is cut short\")] A, #[error(\"it is cut short\")] B }",
        "fn f() { S { #[cfg(test)] t: 1, a: a(\"it is cut short\"), b: b(\"it is cut short\") } }",
    ] {
        assert_eq!(repeated(source).len(), 1, "{source}: {:?}", repeated(source));
    }
    for source in [
        "const X: &str = \"it is cut short\"; const Y: &str = \"it is too long\";",
        "const X: &str = \"the page table\"; const Y: &str = \"the page table\";",
        "/// It is cut short.\nfn f() {}\n/// It is cut short.\nfn g() {}",
        "#[allow(x, reason = \"it is cut short\")] fn f() {} #[allow(x, reason = \"it is cut short\")] fn g() {}",
        "const X: &str = \"it is cut short\"; #[cfg(test)] mod tests { const Y: &str = \"it is cut short\"; }",
        "const X: &str = \"it is cut short\"; #[cfg(all(test, unix))] fn f(x: &str) { a(\"it is cut short\") }",
        "fn f() { a(\"it is cut short\") } #[cfg(test)] fn t<A, B>(a: A) -> R<A, B> { a(\"it is cut short\") }",
        "enum E { #[error(\"it is cut short\")] A, #[cfg(test)] #[error(\"it is cut short\")] T }",
    ] {
        assert_eq!(repeated(source), Vec::<String>::new(), "{source}");
    }
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
fn every_form_of_an_option_name_in_a_text_is_detected() {
    let named = |source: &str| named_options(&source.parse().unwrap());
    for source in [
        "const X: &str = \"use --page-size\";",
        "const X: &str = \"(`--keys plain`)\";",
        "fn f() { bail!(\"{x}: run `duramen check`\") }",
        "/// As `--cache` does.\nfn f() {}",
        "const X: &str = \"use dump and restore\";",
        "const X: &str = \"until it is dumped\";",
        "const X: &str = \"restore the database\";",
    ] {
        assert_eq!(named(source).len(), 1, "{source}: {:?}", named(source));
    }
    for source in [
        "// --keys\nfn f() { x -= --y; }",
        "const X: &str = \"a -- b, ---\";",
        "const X: u8 = b'-';",
        "const X: &str = \"put it back, restore a backup, or remove it\";",
    ] {
        assert_eq!(named(source), Vec::<String>::new(), "{source}");
    }
}
