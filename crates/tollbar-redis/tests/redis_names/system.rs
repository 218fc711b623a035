//! Names as the system has them, in a system of the test's own: /etc/hosts, a name server with a
//! search list and `ndots`, and the order in /etc/nsswitch.conf.

use super::{listeners, through};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tollbar_redis::redis::{Link, LinkError, NameFault, Url};

/// Set in the program that has namespaces of its own.
const INSIDE: &str = "TOLLBAR_TEST_INSIDE";

#[test]
fn names_are_found_where_the_system_finds_them() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let own = std::env::current_exe().expect("this program");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "--net"])
        .arg(own)
        .args(["--exact", "system::names_are_found_where_the_system_finds_them", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare, of util-linux");
    let text = String::from_utf8_lossy(&output.stdout);
    if String::from_utf8_lossy(&output.stderr).starts_with("unshare: ") {
        println!("skipped: this system lets nobody but root have namespaces of its own");
        return;
    }
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

fn inside() {
    loopback_up();
    let directory = std::env::temp_dir().join(format!("tollbar-names-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("a file");
        bind(&path, &Path::new("/etc").join(name));
    };
    file("hosts", "127.0.0.1 localhost\n127.0.0.2 store-of-hosts alias.of.hosts\n");
    file("nsswitch.conf", "hosts: files dns\n");
    file(
        "resolv.conf",
        "nameserver 127.0.0.1\nsearch a.example b.example\noptions ndots:2 timeout:1 attempts:1\n",
    );
    let asked = serve();
    let (first, second, port) = listeners();
    for (host, listener, names) in [
        ("localhost", &first, vec![]),
        ("store-of-hosts", &second, vec![]),
        ("alias.of.hosts", &second, vec![]),
        // One dot is below `ndots`, so the search list comes first.
        ("redis.ns", &first, vec!["redis.ns.a.example", "redis.ns.b.example"]),
        ("redis.ns.b.example", &first, vec!["redis.ns.b.example"]),
    ] {
        let url = format!("redis://{host}:{port}");
        let mut link = Link::new(&Url::parse(&url).expect("a URL"));
        through(&mut link).unwrap_or_else(|why| panic!("{host}: {why}"));
        listener.accept().expect("a connection");
        let mut questions = std::mem::take(&mut *asked.lock().expect("the questions"));
        questions.dedup();
        assert_eq!(questions, names, "{host}");
    }
    let mut link = Link::new(&Url::parse("redis://nobody.at.all:1").expect("a URL"));
    assert_eq!(through(&mut link), Err(LinkError::Name(NameFault::Absent)));
    std::fs::remove_dir_all(&directory).expect("the directory");
}

/// A name server that knows one name. It ends with the program.
fn serve() -> Arc<Mutex<Vec<String>>> {
    let socket = UdpSocket::bind("127.0.0.1:53").expect("the name servers' port");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    std::thread::spawn(move || loop {
        let mut bytes = [0; 512];
        let (length, from) = socket.recv_from(&mut bytes).expect("a question");
        let (name, end) = name(&bytes[..length]);
        let mut answer = bytes[..end + 4].to_vec();
        let known = name == "redis.ns.b.example";
        let has_address = known && bytes[end + 1] == 1;
        // A response, with recursion available; code 3 says that the name does not exist.
        answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
        answer[3] |= if known { 0 } else { 3 };
        if has_address {
            answer[7] = 1;
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 127, 0, 0, 1]);
        }
        names.lock().expect("the questions").push(name);
        socket.send_to(&answer, from).expect("an answer");
    });
    asked
}

/// The name of a question, and where its type begins.
fn name(bytes: &[u8]) -> (String, usize) {
    let (mut at, mut labels) = (12, Vec::new());
    while bytes[at] != 0 {
        let end = at + 1 + usize::from(bytes[at]);
        labels.push(String::from_utf8_lossy(&bytes[at + 1..end]).to_lowercase());
        at = end;
    }
    (labels.join("."), at + 1)
}

fn bind(from: &Path, to: &Path) {
    let text = |path: &Path| std::ffi::CString::new(path.to_str().expect("text")).expect("text");
    let (from, to) = (text(from), text(to));
    let null = std::ptr::null();
    // SAFETY: texts that end with a zero byte, in a mount namespace that ends with this process.
    let mounted =
        unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null, libc::MS_BIND, null.cast()) == 0 };
    assert!(mounted, "{:?}", std::io::Error::last_os_error());
}

/// A new network namespace has a loopback interface that is down.
fn loopback_up() {
    // SAFETY: an all-zero ifreq is valid, and the descriptor is this function's own.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        assert_eq!(libc::ioctl(socket, libc::SIOCSIFFLAGS, &request), 0);
        libc::close(socket);
    }
}
