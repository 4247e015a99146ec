//! TLS towards PostgreSQL: always verified, with the machine's certificates or a file of the user's.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Error, Result};

/// Removes the parameters from an address that libpq knows but our driver does not.
///
/// `sslmode=verify-ca` and `verify-full` become `require`, since we always verify certificates.
/// `sslrootcert=FILE` is returned separately.
pub(super) fn split_parameters(url: &str) -> Result<(String, Option<String>)> {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return Err(Error::BadAddress("the PostgreSQL address cannot be read".into()));
    };
    let mut root_certificate = None;
    let mut kept = Vec::new();
    for (name, value) in parsed.query_pairs() {
        match (&*name, &*value) {
            ("sslrootcert", file) => root_certificate = Some(file.to_owned()),
            ("sslmode", "verify-ca" | "verify-full") => {
                kept.push(("sslmode".to_owned(), "require".to_owned()));
            }
            (name, value) => kept.push((name.to_owned(), value.to_owned())),
        }
    }
    parsed.set_query(None);
    if !kept.is_empty() {
        // The driver decodes %20 but not `+`, which form encoding would write for a space.
        let query: Vec<String> =
            kept.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        parsed.set_query(Some(&query.join("&")));
    }
    Ok((parsed.to_string(), root_certificate))
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(super) fn connector(root_certificate: Option<&str>) -> Result<MakeRustlsConnect> {
    let bad = |why: String| Error::BadAddress(why);
    let mut roots = rustls::RootCertStore::empty();
    match root_certificate {
        Some(file) => {
            let certificates =
                CertificateDer::pem_file_iter(file).map_err(|error| bad(format!("{file}: {error}")))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| bad(format!("{file}: {error}")))?;
                roots.add(certificate).map_err(|error| bad(format!("{file}: {error}")))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
    }
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_libpq_are_understood() {
        let (url, root) = split_parameters(
            "postgres://u@h/db?sslmode=verify-full&sslrootcert=/etc/ca.pem&options=-c%20a%3Db",
        )
        .unwrap();
        assert_eq!(url, "postgres://u@h/db?sslmode=require&options=%2Dc%20a%3Db");
        assert_eq!(root.as_deref(), Some("/etc/ca.pem"));
        assert!(split_parameters("postgres://[").is_err());
    }
}
