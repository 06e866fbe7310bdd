//! Only `page/keys/` names single key lists. All other code asks the table of key lists. In the engine, only the rule
//! for blocks names single codecs. A benchmark chooses its key lists and codecs, as any program that uses the engine
//! may, so these tests do not read `bench/`.

use crate::tokens::{files, is_ident, is_path_separator, read};
use proc_macro2::{TokenStream, TokenTree};
use std::path::Path;

/// Types whose variants are names of key lists.
const KEY_LIST_NAMES: &[&str] =
    &["KeyListKind", "KeyLayout", "KeyList", "KeyListBuilder", "AnyScheme", "Instantiation"];

/// Finds the tokens that name variants of one of the types, except in modules of tests. Such a place is the name of the
/// type, `::`, and then a variant, `*` for all variants, or a group of several. A variant has a capital and small
/// letters, a constant has no small letters, and a function begins with a small letter.
fn named_variants(types: &[&str], stream: &TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let module_of_tests = at >= 2 && is_ident(&tokens[at - 2], "mod") && is_ident(&tokens[at - 1], "tests");
                if !module_of_tests {
                    found.extend(named_variants(types, &group.stream()));
                }
            }
            TokenTree::Ident(ident) if types.iter().any(|name| ident == name) => {
                let Some(name) = tokens.get(at + 3).filter(|_| is_path_separator(&tokens[at + 1..])) else { continue };
                let is_variant = match name {
                    TokenTree::Ident(name) => {
                        let name = name.to_string();
                        name.starts_with(char::is_uppercase) && name.chars().any(char::is_lowercase)
                    }
                    TokenTree::Punct(all) => all.as_char() == '*',
                    TokenTree::Group(_) | TokenTree::Literal(_) => true,
                };
                if is_variant {
                    found.push(format!("{}: {ident}::{name}", ident.span().start().line));
                }
            }
            _ => {}
        }
    }
    found
}

/// Fails if code in these folders, outside of `place` and of tests, names a variant of one of the types.
fn assert_named_only_in(place: &str, types: &[&str], folders: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (place, mut named, mut looked_at) = (root.join(place), Vec::new(), 0);
    assert!(place.exists(), "{} is missing", place.display());
    for folder in folders {
        for file in files(&root.join(folder)) {
            let of_tests = file.iter().any(|part| part == "tests" || part == "tests.rs");
            if file.starts_with(&place) || of_tests {
                continue;
            }
            looked_at += 1;
            let found = named_variants(types, &read(&file));
            named.extend(found.into_iter().map(|what| format!("{}:{what}", file.display())));
        }
    }
    assert!(looked_at > 100, "the code is not where this test looks for it");
    assert!(named.is_empty(), "{} names outside {}:\n{}", named.len(), place.display(), named.join("\n"));
}

#[test]
fn key_lists_are_named_only_in_page_keys() {
    let folders = ["src", "../cli/src", "../fuzz/src", "../query/src", "../sim/src"];
    assert_named_only_in("src/page/keys", KEY_LIST_NAMES, &folders);
}

#[test]
fn codecs_are_named_only_in_the_rule_for_blocks() {
    assert_named_only_in("src/page/keys/blocks/rule.rs", &["Codec"], &["src", "../cli/src", "../query/src"]);
}

#[test]
fn every_form_of_a_key_list_name_is_detected() {
    let named = |source: &str| named_variants(KEY_LIST_NAMES, &source.parse().unwrap());
    for source in [
        "fn f() { match kind { KeyListKind::Plain => 1, _ => 2 } }",
        "use crate::page::KeyListKind::*;",
        "use crate::page::KeyListKind::{Plain, Head};",
        "fn f() -> bool { layout == crate::db::types::KeyLayout::Fixed }",
        "mod inner { const K: KeyListKind = page::KeyListKind::Pkb(2); }",
        "matches!(list, KeyList::Blocks(_))",
    ] {
        assert_eq!(named(source).len(), 1, "{source}: {:?}", named(source));
    }
    for source in [
        "fn f() -> KeyListKind { KeyListKind::USUAL.inner() }",
        "fn f(tag: [u8; 3]) { KeyListKind::from_tag(tag); KeyLayout::ALL.len(); }",
        "#[cfg(test)] mod tests { const K: KeyListKind = KeyListKind::Head; }",
        "// KeyListKind::Plain\n/// [`KeyLayout::Head`]\nfn f() {}",
        "enum Other { Plain } fn f() { Other::Plain }",
    ] {
        assert_eq!(named(source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn the_document_of_every_key_layout_exists() {
    for layout in duramen::db::types::KeyLayout::ALL {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(layout.documentation());
        assert!(document.is_file(), "{layout}: {}", document.display());
    }
}
