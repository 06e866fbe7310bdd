//! Messages of errors name commands and options, not functions of the library.

use crate::place::Place;

#[test]
fn hints_name_commands_and_options() {
    let place = Place::new();
    place.ok("put t.duramen t oak", "");
    place.ok("put s.duramen t oak --store shadow", "");
    place.ok("dump t.duramen d", "");
    for (arguments, word, library) in [
        ("scan no.duramen t", "restore creates one from a dump", "create it first"),
        ("restore t.duramen d", "remove it first, or choose another name", "open it"),
        ("push t.duramen t oak", "load or put with --auto-increment", "auto_increment"),
        ("push t.duramen u oak --key-type str", "--key-type must be u32 or u64", "auto_increment"),
        ("put u.duramen t oak --auto-increment", "--auto-increment cannot be set", "auto_increment"),
        ("put u.duramen t oak --page-size 7", "--page-size cannot be 7", "page_size"),
        ("put u.duramen t oak --key-type word", "'--key-type <TYPE>': it must be bytes", "option type"),
        ("put u.duramen t oak --compress lz5", "'--compress <METHOD>': it must be none", "option compression"),
        ("load t.duramen t --key-type u32", "leave out --key-type", "its own types"),
        ("put t.duramen t oak --store shadow", "`duramen compact t.duramen --store shadow`", "StoreKind"),
        ("put t.duramen t oak --page-size 4K", "`duramen compact t.duramen --page-size 4096`", "page_size"),
        (
            "put s.duramen t oak --store shadow --delta off",
            "`duramen compact s.duramen --store shadow --delta off`",
            "DeltaBlocks",
        ),
        ("compact u.duramen", "there is no database at", "cannot read the size"),
        ("del t.duramen t", "a range with --from, --to or --prefix", "<KEYS>"),
    ] {
        let message = place.error(arguments, "1\n");
        assert!(message.contains(word) && !message.contains(library), "{arguments}: {message}");
    }
    let message = place.run_args(&["put", "u.duramen", "", "oak"], "").err;
    assert!(message.contains("the name of a table cannot be empty"), "{message}");
    assert_eq!(place.files(), ["d", "s.duramen", "t.duramen"]);
    assert_eq!(place.ok("scan t.duramen t", ""), "oak\n");
}

#[test]
fn the_message_about_an_option_that_differs_names_the_conversion() {
    let place = Place::new();
    place.ok("put t.duramen t oak", "");
    place.ok("put s.duramen t oak --store shadow", "");
    for (arguments, conversion) in [
        ("put t.duramen t ash --store shadow", "compact t.duramen --store shadow"),
        ("put t.duramen t ash --page-size 16K", "compact t.duramen --page-size 16384"),
        (
            "put s.duramen t ash --store shadow --delta 2048,128,1",
            "compact s.duramen --store shadow --delta 2048,128,1",
        ),
    ] {
        let message = place.error(arguments, "");
        let option = conversion.rsplit("--").next().unwrap().split(' ').next().unwrap();
        assert!(message.contains(&format!("leave out --{option}")), "{arguments}: {message}");
        assert!(message.contains(&format!("`duramen {conversion}`")), "{arguments}: {message}");
        place.ok(conversion, "");
        place.ok(arguments, "");
    }
}
