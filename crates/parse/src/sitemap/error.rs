//! Why a document is not a sitemap.

use stdx::phrase;
use stdx::phrase::Phrase;

/// Why a document is not a sitemap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SitemapError {
    Empty,
    /// It is a web page.
    Html,
    /// It is XML of another kind.
    OtherXml {
        /// The name of its first element.
        root: String,
    },
    /// It is text without a list of addresses.
    NotASitemap,
    /// Its compression is broken from the start.
    Damaged,
    /// It exceeds a limit when it is decompressed.
    TooLarge {
        limit: u64,
    },
}

impl SitemapError {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            SitemapError::Empty => phrase!("the document is empty", "文書が空です"),
            SitemapError::Html => {
                phrase!("this is an HTML page, not a sitemap", "サイトマップではなく HTML ページです")
            }
            SitemapError::OtherXml { root } => phrase!(
                "this is XML with root `{root}`, not a sitemap",
                "サイトマップではない XML です（ルート要素 `{root}`）"
            ),
            SitemapError::NotASitemap => {
                phrase!("this is neither XML nor a list of addresses", "XML でもアドレスの一覧でもありません")
            }
            SitemapError::Damaged => phrase!("the gzip data is damaged", "gzip のデータが壊れています"),
            SitemapError::TooLarge { limit } => phrase!(
                "the sitemap is larger than {limit} bytes when decompressed",
                "サイトマップは展開すると {limit} バイトを超えます"
            ),
        }
    }
}

stdx::error_in_english!(SitemapError);
