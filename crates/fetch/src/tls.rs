//! The one TLS configuration: rustls with ring and the system's certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::error::Error;
use stdx::phrase;
use stdx::phrase::Phrase;

/// Creates the configuration for all clients.
///
/// It uses the system's certificates, or Mozilla's built-in list if there are none, as in a bare container.
/// `extra_ca` is a PEM file of further authorities to trust.
pub(super) fn config(extra_ca: Option<&Path>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = extra_ca {
        add_authorities(&mut roots, path)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup { why: error.to_string().into() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn add_authorities(roots: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    let fail = |why: Phrase| Error::Setup {
        why: phrase!("certificates in {path}: {why}", "証明書 {path}：{why}"),
    };
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fail(error.to_string().into()))? {
        let certificate = certificate.map_err(|error| fail(error.to_string().into()))?;
        roots.add(certificate).map_err(|error| fail(error.to_string().into()))?;
        count += 1;
    }
    if count == 0 { Err(fail(phrase!("there are none", "証明書がありません"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = config(Some(file.path())).unwrap_err().to_string();
        assert!(
            error.contains("there are none") && error.contains(&file.path().display().to_string()),
            "{error}"
        );
        assert!(config(Some(Path::new("/nonexistent/ca.pem"))).is_err());
    }
}
