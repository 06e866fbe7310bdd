//! Keeps large values beside small ones: a blob is written and read as a stream, a page at a time, past the log.
//!
//!     cargo run --release -p duramen --example blob_store

use duramen::Database;
use duramen::db::types::TableOptions;
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const MIB: u64 = 1 << 20;
    let file = std::env::temp_dir().join(format!("duramen-blobs-{}.duramen", std::process::id()));
    let db = Database::create(&file)?;
    let tx = db.begin_write()?;
    {
        let mut blobs = tx.create_untyped("blobs", "str", "bytes", TableOptions::default())?;
        blobs.put(b"small", b"a few bytes stay in their page")?;
        blobs.put_stream(b"large", 32 * MIB, &mut std::io::repeat(7).take(32 * MIB))?;
    }
    tx.commit()?;

    let blobs = db.begin_read()?.open_untyped("blobs")?;
    for name in ["small", "large"] {
        let mut stream = blobs.get_stream(name.as_bytes())?.ok_or("the blob is gone")?;
        let len = stream.len();
        let (mut buffer, mut read) = ([0; 4096], 0);
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                count => read += count as u64,
            }
        }
        println!("{name}: {read} of {len} bytes read");
    }
    drop((blobs, db));
    std::fs::remove_file(file)?;
    Ok(())
}
