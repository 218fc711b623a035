//! Rules of several files.

use crate::common::*;
use std::fs;
use std::path::PathBuf;
use tollbar_rules::{read, read_file, Format, Options, Rules};

/// A directory of its own, which ends with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tollbar-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("sub")).expect("a directory");
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, format!("version = 1\n{text}")).expect("a file");
        path
    }

    /// The faults of a file, without the directory's name.
    fn faults(&self, name: &str) -> String {
        let text = read_file(self.0.join(name)).map(|_| ()).expect_err("faults").to_string();
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn included_files_add_their_rules() {
    let files = Directory::new("included");
    let main = files.write(
        "main.toml",
        "include = ['sub/more.toml', 'sub/yet.yaml']\ntrusted-proxies = '10.0.0.1'\n[group.a]\nkey = 'all'\nlimit = '5/h'\n\
         [route.b]\npath = '/b'\nreplaces = 'c'\n",
    );
    files.write(
        "sub/more.toml",
        "include = 'again.toml'\ntrusted-proxies = ['10.0.0.2']\n[group.c]\nlimit = '3/h'\n",
    );
    files.write("sub/again.toml", "[group.d]\npath = '/d'\nkey = 'all'\nlimit = '1/h'\n");
    fs::write(files.0.join("sub/yet.yaml"), "version: 1\nshadow: {e: {of: a, limit: 1/h}}\n")
        .expect("a file");
    let rules = Rules::open(&main, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<String> = rules.set().rules().iter().map(|rule| rule.name.clone()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    // The proxies of both files count.
    let by = |path, proxy| {
        let request = [(":path", path), (":address", proxy), ("X-Forwarded-For", "1.1.1.1")];
        admitted(&rules, 2, 0, &request)
    };
    assert_eq!((by("/", "10.0.0.2"), by("/", "10.0.0.1")), (2, 1));
    assert_eq!((by("/d", "10.0.0.1"), by("/b", "10.0.0.1")), (0, 2));
    // A change of an included file, and its fault, which is reported once.
    assert_eq!(rules.reload_if_changed().map(|changed| changed.is_some()).ok(), Some(false));
    files.write("sub/again.toml", "[group.d]\npath = '/d'\nkey = 'all'\nlimit = '1/y'\n");
    let fault = rules.reload_if_changed().expect_err("a fault").to_string();
    assert!(fault.contains("sub/again.toml:5:12: group.d.limit: \"y\" in"), "{fault}");
    assert_eq!(rules.reload_if_changed().map(|changed| changed.is_some()).ok(), Some(false));
    files.write("sub/again.toml", "[group.f]\nlimit = '10/h'\n");
    let reloaded = rules.reload_if_changed().expect("good rules").expect("a change");
    assert_eq!((reloaded.added, reloaded.removed), (vec!["f".to_owned()], vec!["d".to_owned()]));
}

#[test]
fn faults_name_the_file() {
    let files = Directory::new("faulty");
    files.write("a.toml", "include = 'b.toml'\n");
    files.write("b.toml", "include = ['c.toml', 'a.toml']\n");
    files.write("c.toml", "[group.x]\nlimit = '1/s'\n");
    assert_eq!(
        files.faults("a.toml"),
        "b.toml:2:22: include: \"a.toml\" includes this file; expected files without a circle"
    );
    files.write("a.toml", "include = ['c.toml', './c.toml']\n");
    assert_eq!(
        files.faults("a.toml"),
        "a.toml:2:22: include: \"./c.toml\" a second time; expected each file once"
    );
    files.write("a.toml", "include = ['c.toml', 'none.toml']\n");
    let fault = files.faults("a.toml");
    assert!(fault.starts_with("a.toml:2:22: include: \"none.toml\": No such file"), "{fault}");
    files.write("a.toml", "include = 'c.toml'\n[group.x]\nlimit = '1/s'\n");
    let fault = files.faults("a.toml");
    assert!(
        fault.starts_with("a.toml:3:8: group.x: the name") || fault.contains("of another file"),
        "{fault}"
    );
    // What only the first file may have, a fault of the syntax, and a text without a file.
    files.write("c.toml", "status = 404\n[group.x]\nlimit = '1/s'\n");
    let fault = files.faults("a.toml");
    assert!(
        fault.starts_with("c.toml:2:1: unknown field \"status\"; expected one of version"),
        "{fault}"
    );
    files.write("c.toml", "[group\n");
    assert!(files.faults("a.toml").starts_with("c.toml:2:7: "), "{}", files.faults("a.toml"));
    fs::write(files.0.join("c.toml"), "[group.y]\nlimit = '1/s'\n").expect("a file");
    assert!(files.faults("a.toml").starts_with("c.toml:1:1: version: no version"));
    let of_text = read("version = 1\ninclude = 'x.toml'\n[group.a]\nlimit = '1/s'", Format::Toml);
    let all = of_text.expect_err("a fault");
    assert_eq!(
        all[0].to_string(),
        "2:11: include: an include; expected a file: rules of a text include no files"
    );
}
