//! The parts of a crate that other crates of the workspace may use. Cargo allows all public items of a dependency.
//! These rules are narrower: only tests and fuzz targets may use items that the engine hides from its documentation.

use crate::tokens::{files, is_ident, is_path_separator, is_punct, module, paths, read};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How much of a crate another one may use.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// The items in its documentation.
    Shown,
    All,
}

/// The other crates of the workspace that the code of a folder may use; each may use itself.
type Uses = &'static [(&'static str, Access)];

/// Folders of code, with the crate that the code belongs to.
const FOLDERS: &[(&str, &str, Uses)] = &[
    ("codec", "duramen_codec", &[]),
    ("engine/src", "duramen", &[]),
    ("engine/src/page", "duramen", &[("duramen_codec", Access::All)]),
    ("engine/examples", "", &[("duramen", Access::Shown)]),
    ("engine/tests", "", &[("duramen", Access::All), ("duramen_sim", Access::All)]),
    ("query", "duramen_query", &[("duramen", Access::Shown)]),
    ("size", "duramen_size", &[]),
    ("cli", "", &[("duramen", Access::Shown), ("duramen_query", Access::All), ("duramen_size", Access::All)]),
    ("cli/tests", "", &[("duramen", Access::Shown), ("duramen_sim", Access::All)]),
    ("sim", "duramen_sim", &[("duramen", Access::Shown)]),
    (
        "bench",
        "duramen_bench",
        &[
            ("duramen", Access::Shown),
            ("duramen_codec", Access::All),
            ("duramen_sim", Access::All),
            ("duramen_size", Access::All),
        ],
    ),
    ("fuzz", "duramen_fuzz", &[("duramen", Access::All), ("duramen_codec", Access::All)]),
    ("peers", "", &[("duramen", Access::Shown), ("duramen_bench", Access::All)]),
];

/// The items of a crate that are `#[doc(hidden)]`.
#[derive(Default)]
struct Hidden {
    /// Modules and other items, by their paths.
    items: BTreeSet<Vec<String>>,
    /// Functions and methods, by their names.
    functions: BTreeSet<String>,
}

impl Hidden {
    /// Adds what is hidden among the tokens of `module`.
    fn add(&mut self, module: &[String], stream: &TokenStream) {
        let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
        let (mut hidden, mut at) = (false, 0);
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                    hidden |= group.stream().to_string().replace(' ', "") == "doc(hidden)";
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => self.add(module, &group.stream()),
                TokenTree::Ident(keyword) => {
                    let name = tokens.get(at + 1).map(ToString::to_string);
                    match (keyword.to_string().as_str(), name, tokens.get(at + 2)) {
                        ("mod", Some(name), body) => {
                            let inner: Vec<String> = module.iter().cloned().chain([name]).collect();
                            if let Some(TokenTree::Group(body)) = body {
                                self.add(&inner, &body.stream());
                                at += 2;
                            }
                            if std::mem::take(&mut hidden) {
                                self.items.insert(inner);
                            }
                        }
                        ("fn", Some(name), _) if std::mem::take(&mut hidden) => {
                            self.functions.insert(name);
                        }
                        ("const", Some(next), _) if next == "fn" || next == "unsafe" => {}
                        ("struct" | "enum" | "trait" | "const" | "static" | "type", Some(name), _)
                            if std::mem::take(&mut hidden) =>
                        {
                            self.items.insert(module.iter().cloned().chain([name]).collect());
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The error in a use of the path, whose first name is the crate.
    fn judge(&self, path: &[String]) -> Option<String> {
        let (name, inner) = (path.join("::"), &path[1..]);
        if (1..=inner.len()).any(|len| self.items.contains(&inner[..len])) {
            return Some(format!("uses {name}, which is hidden"));
        }
        let module = inner.strip_suffix(&["*".to_owned()]).unwrap_or(inner);
        let holds_hidden = self.items.iter().any(|item| item.starts_with(module));
        holds_hidden.then(|| format!("takes {name}, of which parts are hidden, as a whole"))
    }
}

/// The hidden items of the engine.
fn hidden() -> Hidden {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut hidden = Hidden::default();
    for file in files(&root) {
        let module = module(file.strip_prefix(&root).unwrap());
        let module = if module == ["lib"] { Vec::new() } else { module };
        hidden.add(&module, &read(&file));
    }
    hidden
}

/// The errors in the code of a folder, each with its line.
fn violations(own: &str, uses: Uses, hidden: &Hidden, stream: &TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    let mut wrong = Vec::new();
    let shown_only = uses.contains(&("duramen", Access::Shown));
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => wrong.extend(violations(own, uses, hidden, &group.stream())),
            TokenTree::Ident(ident) => {
                let (name, line) = (ident.to_string(), ident.span().start().line);
                let before = at.checked_sub(1).map(|before| &tokens[before]);
                let selected = before.is_some_and(|token| is_punct(token, ':') || is_punct(token, '.'));
                if selected && shown_only && hidden.functions.contains(&name) {
                    wrong.push(format!("{line}: uses {name}, which is hidden"));
                }
                let is_path = is_path_separator(&tokens[at + 1..])
                    || before.is_some_and(|token| is_ident(token, "use") || is_ident(token, "crate"))
                    || tokens.get(at + 1).is_some_and(|token| is_ident(token, "as"));
                if !(name == "duramen" || name.starts_with("duramen_")) || name == own || !is_path {
                    continue;
                }
                match uses.iter().find(|(used, _)| *used == name) {
                    None => wrong.push(format!("{line}: uses {name}, which it may not")),
                    Some((_, Access::All)) => {}
                    Some((_, Access::Shown)) => {
                        let found = paths(&tokens, at).into_iter().filter_map(|path| hidden.judge(&path));
                        wrong.extend(found.map(|what| format!("{line}: {what}")));
                    }
                }
            }
            _ => {}
        }
    }
    wrong
}

/// The files of a folder of [`FOLDERS`] that belong to none of the folders within it.
fn own_files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let parts: Vec<PathBuf> = if folder.contains('/') {
        vec![root.join(folder)]
    } else {
        ["src", "tests", "examples", "benches"].map(|part| root.join(folder).join(part)).into_iter().collect()
    };
    let within = |file: &Path| {
        let others = FOLDERS.iter().filter(|(other, ..)| *other != folder && other.starts_with(folder));
        others.into_iter().any(|(other, ..)| file.starts_with(root.join(other)))
    };
    let found = parts.iter().filter(|part| part.is_dir()).flat_map(|part| files(part));
    found.filter(|file| !within(file)).collect()
}

#[test]
fn no_crate_uses_a_forbidden_item() {
    let hidden = hidden();
    let mut wrong = Vec::new();
    for (folder, own, uses) in FOLDERS {
        let files = own_files(folder);
        assert!(!files.is_empty(), "{folder} is not where this test looks for it");
        for file in files {
            let found = violations(own, uses, &hidden, &read(&file));
            wrong.extend(found.into_iter().map(|what| format!("{}:{what}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{} uses of crates against the rules:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_crate_of_the_workspace_has_a_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("Cargo.toml").is_file() {
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(FOLDERS.iter().any(|(rule, ..)| rule.split('/').next() == Some(name)), "{name}");
        }
    }
}

#[test]
fn hidden_items_of_the_engine_are_collected() {
    let hidden = hidden();
    for module in [&["page"][..], &["store"], &["base", "bytes"]] {
        assert!(hidden.items.contains(&module.iter().map(ToString::to_string).collect::<Vec<_>>()), "{module:?}");
    }
    assert!(hidden.functions.contains("each_page"));
    let mut own = Hidden::default();
    let source = "#[doc(hidden)] #[inline] pub const fn f() {} pub fn g() {} pub mod a { #[doc(hidden)] pub struct S; \
        pub struct T; impl T { #[doc(hidden)] pub fn h(&self) {} } } #[doc(hidden)] pub const C: u8 = 7;";
    own.add(&[], &source.parse().unwrap());
    assert_eq!(own.items.iter().map(|item| item.join("::")).collect::<Vec<_>>(), ["C", "a::S"]);
    assert_eq!(own.functions.iter().collect::<Vec<_>>(), ["f", "h"]);
}

#[test]
fn every_form_of_a_forbidden_crate_use_is_detected() {
    let hidden = hidden();
    let shown: Uses = &[("duramen", Access::Shown)];
    let judge = |uses, source: &str| violations("duramen_cli", uses, &hidden, &source.parse().unwrap());
    for source in [
        "use duramen::page::Page;",
        "use duramen::{Error, store};",
        "use duramen::{Error, store::superblock::MAGIC};",
        "use ::duramen::tree::Tree;",
        "use duramen::base::bytes::push_varint;",
        "use duramen::base;",
        "use duramen::base::{self, PageId};",
        "use duramen::base::*;",
        "use duramen::*;",
        "use duramen as engine;",
        "use {duramen as engine};",
        "extern crate duramen;",
        "fn f() { if true { duramen::log::survey() } }",
        "fn f(db: &duramen::Database) { db.each_page(|_, _| ()) }",
        "fn f() { Builder::batch_bytes(x, 7) }",
        "mod tests { use duramen_sim::FailingVolume; }",
        "use duramen_codec::Codec;",
    ] {
        assert_eq!(judge(shown, source).len(), 1, "{source}: {:?}", judge(shown, source));
    }
    for source in [
        "use duramen::{Error, base::{PageId, limits::MAX_KEY}, db::types::DynType, query::*};",
        "use duramen_cli::words; const PROGRAM: &str = \"duramen::page\"; fn each_page(duramen: u8) {}",
        "fn f() -> duramen::Result<()> { duramen::Database::in_memory()?.close() }",
    ] {
        assert_eq!(judge(shown, source), Vec::<String>::new(), "{source}");
    }
    assert_eq!(judge(&[("duramen", Access::All)], "use duramen::page::Page;"), Vec::<String>::new());
    assert_eq!(judge(&[], "use duramen::Error;").len(), 1, "codec uses no other crate");
    assert_eq!(judge(shown, "\nuse duramen::page::Page;"), ["2: uses duramen::page::Page, which is hidden"]);
}
