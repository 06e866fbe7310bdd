//! Runs the program in a folder of its own.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder that is removed with all in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The exit status.
    pub(crate) status: i32,
    /// Its standard output.
    pub(crate) out: Vec<u8>,
    /// Its standard error.
    pub(crate) err: String,
}

impl Place {
    /// An empty one.
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of the files in it, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Turns 64 bytes of a file round, or what there is of them.
    pub(crate) fn damage(&self, name: &str, at: usize) {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        bytes[at..].iter_mut().take(64).for_each(|byte| *byte = !*byte);
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Damages a file wherever `text` stands in it: pages that have been written again have left older images.
    pub(crate) fn damage_text(&self, name: &str, text: &str) {
        let find = || {
            let bytes = std::fs::read(self.path(name)).unwrap();
            bytes.windows(text.len()).position(|window| window == text.as_bytes())
        };
        self.damage(name, find().expect(text));
        while let Some(at) = find() {
            self.damage(name, at);
        }
    }

    /// The program with arguments separated by blanks, `input` on standard input.
    pub(crate) fn run(&self, arguments: &str, input: impl AsRef<[u8]>) -> Run {
        self.run_args(&arguments.split_whitespace().collect::<Vec<_>>(), input)
    }

    /// The program with these very arguments.
    pub(crate) fn run_args(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.as_ref().to_vec());
        // The program may end without reading all of it.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        Run { status: output.status.code().unwrap(), out: output.stdout, err }
    }

    /// The program, to be started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duramen"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// The standard output of a run that must succeed without complaint.
    pub(crate) fn ok(&self, arguments: &str, input: impl AsRef<[u8]>) -> String {
        let run = self.run(arguments, input);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{arguments}");
        String::from_utf8(run.out).unwrap()
    }

    /// The JSON report of a run that must succeed.
    pub(crate) fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(&format!("{arguments} --format json"), "")).unwrap()
    }

    /// The one line of complaint of a run that must fail, writing nothing else.
    pub(crate) fn error(&self, arguments: &str, input: impl AsRef<[u8]>) -> String {
        let run = self.run(arguments, input);
        assert_eq!((run.status, run.out.as_slice()), (2, &b""[..]), "{arguments}: {run:?}");
        assert_eq!(run.err.matches('\n').count(), 1, "{arguments}: {}", run.err);
        assert!(run.err.starts_with("error: "), "{arguments}: {}", run.err);
        run.err
    }
}
