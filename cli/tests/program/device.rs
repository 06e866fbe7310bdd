//! Databases on a block device, by a link.

use crate::place::Place;
use duramen_sim::LoopDevice;
use serde_json::Value;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::{FileExt, symlink};

/// A device of 64 MiB on the file `backing`, and a link `t.duramen` to it.
fn device(place: &Place) -> Option<LoopDevice> {
    File::create(place.path("backing")).unwrap().set_len(64 << 20).unwrap();
    let device = LoopDevice::of(&place.path("backing"));
    let device = device.inspect_err(|why| println!("SKIPPED: this test needs a loop device: {why}")).ok()?;
    symlink(device.path(), place.path("t.duramen")).unwrap();
    Some(device)
}

#[test]
fn a_dump_does_not_overwrite_a_database_on_a_device() {
    let place = Place::new();
    let Some(device) = device(&place) else { return };
    place.ok("load t.duramen t -q", "elm\noak\n");
    place.ok("load other.duramen t -q", "yew\n");
    let path = device.path().to_str().unwrap();
    for source in ["t.duramen", "other.duramen"] {
        for file in ["t.duramen", path] {
            for option in ["", "--skip-damaged"] {
                let message = place.error(&format!("dump {source} {file} {option} -q"), "");
                assert!(message.contains("is a database"), "{source} {file}: {message}");
                assert_eq!(place.ok("scan t.duramen t", ""), "elm\noak\n", "{source} {file}");
            }
        }
    }
    assert_eq!(place.json("check t.duramen")["sound"], true);
    // A device without a database is written.
    let erased = File::options().write(true).open(path).unwrap();
    erased.write_all_at(&[0; 1 << 16], 0).unwrap();
    erased.sync_all().unwrap();
    place.ok("dump other.duramen t.duramen -q", "");
    let dump = place.run("dump other.duramen", "").out;
    let mut found = vec![0; dump.len()];
    File::open(place.path("backing")).unwrap().read_exact_at(&mut found, 0).unwrap();
    assert!(found == dump, "the dump begins at the first byte");
    let message = place.error("dump other.duramen t.duramen --skip-damaged -q", "");
    assert!(message.contains("already exists"), "{message}");
}

#[test]
fn commands_use_a_database_on_a_device_like_one_in_a_file() {
    for store in ["table", "shadow"] {
        let place = Place::new();
        let Some(_device) = device(&place) else { return };
        let mut text = String::new();
        for n in 0..20_000 {
            writeln!(text, "forest/of/the/north/{n:07}\tvalue {n}").unwrap();
        }
        let loaded = place.ok(&format!("load t.duramen t --store {store} -q --format json"), &text);
        let loaded: Value = serde_json::from_str(&loaded).unwrap();
        let stat = &place.json("stat t.duramen")["database"];
        assert_eq!((stat["store"].as_str(), &loaded["database_bytes"]), (Some(store), &stat["allocated_bytes"]));
        assert!(loaded["database_bytes"].as_u64() > Some(100_000), "{loaded}");
        assert_eq!(place.json("check t.duramen")["sound"], true);
        assert_eq!(place.json("compact t.duramen -q")["entries"], 20_000);
        place.ok("dump t.duramen dump -q", "");
        place.ok("restore copy.duramen dump -q", "");
        assert_eq!(place.ok("scan copy.duramen t", ""), text);
        assert_eq!(place.files(), ["backing", "copy.duramen", "dump", "t.duramen"]);
        let refused = place.run("compact t.duramen --page-size 16K -q", "");
        assert!(refused.status == 2 && refused.err.contains("use dump and restore"), "{}", refused.err);
        assert_eq!(place.ok("scan t.duramen t", ""), text);
    }
}
