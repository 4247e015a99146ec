//! Why a document was read only in part, in words.

use crate::parse::feed::{DEPTH_LIMIT, ENTRY_LIMIT};
use crate::parse::html::NODE_LIMIT;
use crate::parse::{Cut, sitemap};
use crate::phrase;
use crate::phrase::Phrase;

/// The reason in words.
pub fn phrase(cut: Cut) -> Phrase {
    match cut {
        Cut::Entries => phrase!(
            "it has more than {limit entry}; the rest was not read",
            "{limit} 件を超えるため、残りは読み込んでいません",
            limit = ENTRY_LIMIT
        ),
        Cut::Nesting => phrase!(
            "its elements nest deeper than {limit}; what is inside was not read",
            "要素の入れ子が {limit} 段を超えるため、その内側は読み込んでいません",
            limit = DEPTH_LIMIT
        ),
        Cut::Nodes => phrase!(
            "the page has more than {limit} elements; the rest was not read",
            "ページの要素が {limit} 個を超えるため、残りは読み込んでいません",
            limit = NODE_LIMIT
        ),
        Cut::Addresses => phrase!(
            "it lists more than {limit address}; the rest was not read",
            "アドレスが {limit} 件を超えるため、残りは読み込んでいません",
            limit = sitemap::SitemapLimits::default().max_urls
        ),
        Cut::Sitemaps => phrase!(
            "it lists more sitemaps than are read; only the first and the last were",
            "サイトマップの数が上限を超えるため、最初と最後の部分だけを読み込みました"
        ),
        Cut::End => phrase!("it breaks off", "文書が途中で切れています"),
    }
}
