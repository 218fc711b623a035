//! TLS of a link by rustls, with the application's own configuration.

use super::text::Text;
use super::tls::{Cipher, TlsFault, Transport};
use ::rustls::pki_types::ServerName;
use ::rustls::{ClientConfig, ClientConnection};
use core::fmt::Display;
use std::boxed::Box;
use std::io::{ErrorKind, Read, Write};
use std::string::ToString;
use std::sync::Arc;

/// A [`Transport`] by rustls. Its configuration has the certificates that the client trusts, and
/// the client's own.
///
/// ```no_run
/// use std::sync::Arc;
/// use tollbar_redis::redis::{Link, Rustls, Url};
///
/// let roots = rustls::RootCertStore::empty(); // add your authority's certificate
/// let configuration =
///     rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
/// let mut link = Link::new(&Url::parse("rediss://cache.example.com")?);
/// link.secure(Box::new(Rustls::new(Arc::new(configuration))));
/// # Ok::<(), tollbar_redis::redis::UrlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rustls {
    configuration: Arc<ClientConfig>,
}

struct RustlsCipher(ClientConnection);

impl Rustls {
    /// A transport with this configuration.
    pub fn new(configuration: Arc<ClientConfig>) -> Rustls {
        Rustls { configuration }
    }
}

impl Transport for Rustls {
    fn start(&self, host: &str) -> Result<Box<dyn Cipher>, TlsFault> {
        let name = ServerName::try_from(host.to_string()).map_err(fault)?;
        let connection = ClientConnection::new(self.configuration.clone(), name).map_err(fault)?;
        Ok(Box::new(RustlsCipher(connection)))
    }
}

impl Cipher for RustlsCipher {
    fn cipher_in(&mut self, mut from: &[u8]) -> Result<usize, TlsFault> {
        let taken = self.0.read_tls(&mut from).map_err(fault)?;
        self.0.process_new_packets().map_err(fault)?;
        Ok(taken)
    }

    fn cipher_out(&mut self, mut into: &mut [u8]) -> Result<usize, TlsFault> {
        if !self.0.wants_write() {
            return Ok(0);
        }
        self.0.write_tls(&mut into).map_err(fault)
    }

    fn plain_in(&mut self, from: &[u8]) -> Result<usize, TlsFault> {
        self.0.writer().write(from).map_err(fault)
    }

    fn plain_out(&mut self, into: &mut [u8]) -> Result<usize, TlsFault> {
        match self.0.reader().read(into) {
            Ok(given) => Ok(given),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(fault(error)),
        }
    }

    fn is_open(&mut self) -> Result<bool, TlsFault> {
        Ok(!self.0.is_handshaking())
    }
}

fn fault(why: impl Display) -> TlsFault {
    Text::printable(why.to_string().as_bytes())
}
