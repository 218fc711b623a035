//! Where a log's bytes come from: files, standard input, gzip and zstd.

use crate::problem::{Problem, Result};
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;

/// A log that is open.
pub struct Source {
    /// For messages: the path, or "standard input".
    pub name: String,
    /// The bytes, after decompression.
    pub bytes: Box<dyn Read>,
    /// The bytes of the file, 0 if unknown: for progress.
    pub size: u64,
    /// How many of them have been read.
    pub read: Arc<AtomicU64>,
    /// To know the file again.
    pub identity: Option<(u64, u64)>,
}

/// The device and the number of a plain file.
pub fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

struct CountedReader<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(out)?;
        self.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

const STDIN: &str = "standard input";

impl Source {
    /// Opens the log at `path`; `-` is standard input.
    pub fn open(path: &str) -> Result<Source> {
        let name = if path == "-" { STDIN } else { path };
        let wrong = |error: io::Error| Problem::system(name, &error);
        let file = if path == "-" { stdin_as_file() } else { File::open(path) }.map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        if metadata.is_dir() {
            return Err(Problem::io(format!("{name}: Is a directory")));
        }
        if path == "-" && io::stdin().is_terminal() {
            eprintln!("tollbar: reading the log from the terminal; control-D ends it");
        }
        let read = Arc::new(AtomicU64::new(0));
        let mut counted = CountedReader { inner: file, read: Arc::clone(&read) };
        let mut head = Vec::new();
        counted.by_ref().take(4).read_to_end(&mut head).map_err(wrong)?;
        let is_gzip = head.starts_with(&[0x1f, 0x8b]);
        let is_zstd = head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let whole = io::Cursor::new(head).chain(counted);
        let bytes: Box<dyn Read> = if is_gzip {
            Box::new(Threaded::new(move || Ok(flate2::read::MultiGzDecoder::new(whole))))
        } else if is_zstd {
            Box::new(Threaded::new(move || zstd::stream::read::Decoder::new(whole)))
        } else {
            Box::new(whole)
        };
        let size = if metadata.is_file() { metadata.len() } else { 0 };
        Ok(Source { name: name.to_owned(), bytes, size, read, identity: identity(&metadata) })
    }
}

fn stdin_as_file() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Decompresses on a thread of its own, so that decompression and decisions take two cores.
struct Threaded {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
}

const BLOCK: usize = 1 << 18;
const BLOCKS_AHEAD: usize = 4;

impl Threaded {
    fn new<R: Read, M: FnOnce() -> io::Result<R> + Send + 'static>(make: M) -> Threaded {
        let (send, blocks) = sync_channel(BLOCKS_AHEAD);
        std::thread::spawn(move || {
            let mut reader = match make() {
                Ok(reader) => reader,
                Err(error) => {
                    let _ = send.send(Err(error));
                    return;
                }
            };
            loop {
                let mut block = Vec::with_capacity(BLOCK);
                let result = reader.by_ref().take(BLOCK as u64).read_to_end(&mut block);
                let is_end = block.is_empty();
                // The bytes before a fault in the file are good.
                if !is_end && send.send(Ok(block)).is_err() {
                    return;
                }
                match result {
                    Ok(_) if is_end => return,
                    Ok(_) => {}
                    Err(error) => {
                        let _ = send.send(Err(error));
                        return;
                    }
                }
            }
        });
        Threaded { blocks, block: Vec::new(), at: 0 }
    }
}

impl Read for Threaded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            match self.blocks.recv() {
                Ok(block) => self.block = block?,
                Err(_) => return Ok(0),
            }
            self.at = 0;
        }
        let got = out.len().min(self.block.len() - self.at);
        out[..got].copy_from_slice(&self.block[self.at..self.at + got]);
        self.at += got;
        Ok(got)
    }
}
