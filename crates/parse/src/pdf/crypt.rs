//! Encrypted files that open without a password: the standard handler, from RC4 with 40 bits to AES with 256.

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit, StreamCipher};
use md5::{Digest, Md5};
use rc4::{KeyInit, Rc4};
use sha2::{Sha256, Sha384, Sha512};

use super::budget::WorkBudget;
use super::document::PdfDocument;
use super::object::{Dict, Object, ObjectId};

/// Padding of short passwords, such as the empty one.
const PADDING: [u8; 32] = [
    0x28, 0xBF, 0x4E, 0x5E, 0x4E, 0x75, 0x8A, 0x41, 0x64, 0x00, 0x4E, 0x56, 0xFF, 0xFA, 0x01, 0x08, 0x2E,
    0x2E, 0x00, 0xB6, 0xD0, 0x68, 0x3E, 0x80, 0x2F, 0x0C, 0xA9, 0xFE, 0x64, 0x53, 0x69, 0x7A,
];
/// The block size of AES, and the length of the initial vector before each piece of data.
const BLOCK: usize = 16;
/// The cost of decrypting a string besides its bytes.
const STRING: usize = 100;

/// The key of a file and its algorithms.
#[derive(Debug)]
pub(super) struct Crypt {
    key: Vec<u8>,
    streams: Method,
    strings: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Plain,
    Rc4,
    Aes128,
    Aes256,
}

/// The parameters of the standard security handler.
struct Handler {
    version: usize,
    revision: usize,
    owner: Vec<u8>,
    user: Vec<u8>,
    /// The encrypted key; only in the newest revisions.
    user_key: Vec<u8>,
    permissions: u32,
    key_length: usize,
    hides_metadata: bool,
    id: Vec<u8>,
}

impl Crypt {
    /// The key of a file; `None` if it needs a password or uses an unknown algorithm.
    pub(super) fn open(document: &PdfDocument<'_>, dict: &Dict, id: &[u8]) -> Option<Self> {
        if document.value(dict, "Filter").name() != Some(b"Standard") {
            return None;
        }
        let number = |key: &str| document.value(dict, key).size();
        let bytes = |key: &str| document.value(dict, key).text().unwrap_or_default().to_vec();
        let version = number("V").unwrap_or(0);
        let (streams, strings) = match version {
            1 | 2 => (Method::Rc4, Method::Rc4),
            4 | 5 => (method(document, dict, "StmF")?, method(document, dict, "StrF")?),
            _ => return None,
        };
        let key_length = match (version, number("Length").unwrap_or(40)) {
            (1, _) => 5,
            (4, _) => 16,
            // Some writers give the length in bytes.
            (_, length @ 5..=16) => length,
            (_, bits) => (bits / 8).clamp(5, 16),
        };
        let permissions = document.value(dict, "P").number().unwrap_or(0.0) as i64 as u32;
        let handler = Handler {
            version,
            revision: number("R").unwrap_or(0),
            owner: bytes("O"),
            user: bytes("U"),
            user_key: bytes("UE"),
            permissions,
            key_length,
            hides_metadata: *document.value(dict, "EncryptMetadata") != Object::Bool(false),
            id: id.to_vec(),
        };
        Some(Self { key: handler.key()?, streams, strings })
    }

    /// Decrypts the data of a stream.
    pub(super) fn stream(&self, data: &[u8], source: ObjectId) -> Vec<u8> {
        self.decrypt(self.streams, data, source)
    }

    /// Decrypts the strings of a value, at a cost for each.
    pub(super) fn strings(&self, object: Object, source: ObjectId, budget: &WorkBudget) -> Object {
        match object {
            Object::Text(text) => match budget.spend(STRING) {
                Some(()) => Object::Text(self.decrypt(self.strings, &text, source)),
                None => Object::Null,
            },
            Object::Array(array) => {
                Object::Array(array.into_iter().map(|value| self.strings(value, source, budget)).collect())
            }
            Object::Dict(dict) => Object::Dict(dict.map(|value| self.strings(value, source, budget))),
            other => other,
        }
    }

    fn decrypt(&self, method: Method, data: &[u8], source: ObjectId) -> Vec<u8> {
        match method {
            Method::Plain => data.to_vec(),
            Method::Rc4 => rc4(&self.key_of(source, b""), data),
            Method::Aes128 => aes::<cbc::Decryptor<aes::Aes128>>(&self.key_of(source, b"sAlT"), data),
            Method::Aes256 => aes::<cbc::Decryptor<aes::Aes256>>(&self.key, data),
        }
    }

    fn key_of(&self, source: ObjectId, salt: &[u8]) -> Vec<u8> {
        let hash = Md5::new()
            .chain_update(&self.key)
            .chain_update(&source.number.to_le_bytes()[..3])
            .chain_update(&source.generation.to_le_bytes()[..2])
            .chain_update(salt)
            .finalize();
        hash[..(self.key.len() + 5).min(16)].to_vec()
    }
}

/// The algorithm that `key` of the handler selects; `None` if it is unknown.
fn method(document: &PdfDocument<'_>, dict: &Dict, key: &str) -> Option<Method> {
    let name = document.value(dict, key);
    let name = match name.name() {
        None | Some(b"Identity") => return Some(Method::Plain),
        Some(name) => name,
    };
    let filters = document.value(dict, "CF");
    let filter = document.resolve(filters.dict()?.find_bytes(name)?);
    match document.value(filter.dict()?, "CFM").name() {
        None | Some(b"None") => Some(Method::Plain),
        Some(b"V2") => Some(Method::Rc4),
        Some(b"AESV2") => Some(Method::Aes128),
        Some(b"AESV3") => Some(Method::Aes256),
        Some(_) => None,
    }
}

impl Handler {
    /// The key, if the password is empty.
    fn key(&self) -> Option<Vec<u8>> {
        match (self.version, self.revision) {
            (1 | 2 | 4, 2..=4) => self.key_by_md5(),
            (5, 5 | 6) => self.key_by_sha(),
            _ => None,
        }
    }

    fn key_by_md5(&self) -> Option<Vec<u8>> {
        let mut hash = Md5::new();
        hash.update(PADDING);
        hash.update(self.owner.get(..32)?);
        hash.update(self.permissions.to_le_bytes());
        hash.update(&self.id);
        if self.revision == 4 && !self.hides_metadata {
            hash.update([0xFF; 4]);
        }
        let mut key = hash.finalize().to_vec();
        if self.revision >= 3 {
            for _ in 0..50 {
                key = Md5::digest(&key[..self.key_length]).to_vec();
            }
        }
        key.truncate(self.key_length);
        let (proof, wanted) = match self.revision {
            2 => (rc4(&key, &PADDING), self.user.get(..32)?),
            _ => {
                let proof = Md5::new().chain_update(PADDING).chain_update(&self.id).finalize().to_vec();
                let keys = (0..20).map(|step: u8| key.iter().map(|byte| byte ^ step).collect::<Vec<u8>>());
                (keys.fold(proof, |proof, key| rc4(&key, &proof)), self.user.get(..16)?)
            }
        };
        (proof == wanted).then_some(key)
    }

    fn key_by_sha(&self) -> Option<Vec<u8>> {
        let (proof, salts) = self.user.get(..48)?.split_at(32);
        let hash = |salt: &[u8]| match self.revision {
            5 => Sha256::digest(salt).to_vec(),
            _ => slow_hash(salt),
        };
        if hash(&salts[..8]) != proof {
            return None;
        }
        let mut key = self.user_key.get(..32)?.to_vec();
        let cipher = cbc::Decryptor::<aes::Aes256>::new_from_slices(&hash(&salts[8..]), &[0; BLOCK]).ok()?;
        cipher.decrypt_padded::<NoPadding>(&mut key).ok()?;
        Some(key)
    }
}

/// The hash of revision 6 for the empty password: many rounds, each depending on the one before.
fn slow_hash(salt: &[u8]) -> Vec<u8> {
    let mut key = Sha256::digest(salt).to_vec();
    let mut round = 0;
    loop {
        let mut data = key.repeat(64);
        let length = data.len();
        // The lengths of key and data are right by construction.
        if let Ok(cipher) =
            cbc::Encryptor::<aes::Aes128>::new_from_slices(&key[..BLOCK], &key[BLOCK..2 * BLOCK])
        {
            let _ = cipher.encrypt_padded::<NoPadding>(&mut data, length);
        }
        let rest = data[..BLOCK].iter().map(|byte| u32::from(*byte)).sum::<u32>() % 3;
        key = match rest {
            0 => Sha256::digest(&data).to_vec(),
            1 => Sha384::digest(&data).to_vec(),
            _ => Sha512::digest(&data).to_vec(),
        };
        round += 1;
        let last = data.last().copied().unwrap_or(0);
        if round >= 64 && u32::from(last) + 32 <= round {
            key.truncate(32);
            return key;
        }
    }
}

fn rc4(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    if let Ok(mut cipher) = Rc4::new_from_slice(key) {
        cipher.apply_keystream(&mut data);
    }
    data
}

/// The data after the initial vector, without padding; truncated data is decrypted as far as possible.
fn aes<C: BlockModeDecrypt + KeyIvInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let Some((start, rest)) = data.split_at_checked(BLOCK) else { return Vec::new() };
    let mut plain = rest[..rest.len() / BLOCK * BLOCK].to_vec();
    let Ok(cipher) = C::new_from_slices(key, start) else { return Vec::new() };
    if cipher.decrypt_padded::<NoPadding>(&mut plain).is_err() {
        return Vec::new();
    }
    let padding = plain.last().map_or(0, |byte| usize::from(*byte));
    if (1..=BLOCK).contains(&padding) {
        plain.truncate(plain.len() - padding);
    }
    plain
}
