//! Databases on a block device, by a link.

use crate::place::Place;
use duramen_sim::LoopDevice;
use serde_json::Value;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::symlink;

#[test]
fn commands_use_a_database_on_a_device_like_one_in_a_file() {
    for store in ["table", "shadow"] {
        let place = Place::new();
        File::create(place.path("backing")).unwrap().set_len(64 << 20).unwrap();
        let device = match LoopDevice::of(&place.path("backing")) {
            Ok(device) => device,
            Err(why) => {
                println!("SKIPPED: this test needs a loop device: {why}");
                return;
            }
        };
        symlink(device.path(), place.path("t.duramen")).unwrap();
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
