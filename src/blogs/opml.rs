//! The blogs of the config as OPML, for other readers.

use super::config::Keys;
use super::{KIND, store};
use crate::config::Config;
use crate::db::{self, Db};
use crate::engine::pipeline::Rendered;
use crate::parse::opml;
use crate::phrase;

/// The blogs of the config, with detected feeds where the config names none.
pub(super) async fn render(config: &Config, db: Option<&Db>, job: Option<&str>) -> db::Result<Rendered> {
    let found = match db {
        Some(db) => db.read(store::list_feeds).await?,
        None => Default::default(),
    };
    let mut feeds = Vec::new();
    let mut left_out = 0;
    let jobs = config.jobs.iter().filter(|of| of.kind == KIND);
    for of in jobs.filter(|of| job.is_none_or(|name| of.name.as_str() == name)) {
        let Ok(keys) = of.section.keys::<Keys>() else { continue };
        for blog in &keys.blog {
            let named = blog.feed.as_ref().map(|feed| feed.as_str().to_owned());
            let feed = named.or_else(|| found.get(&blog.id).cloned());
            match feed {
                None => left_out += 1,
                Some(url) => feeds.push(opml::Feed {
                    url,
                    title: Some(blog.name().to_owned()),
                    page: Some(blog.url.as_str().to_owned()),
                    folders: match &blog.folder {
                        Some(folder) => folder.split('/').map(|part| part.trim().into()).collect(),
                        None => vec![of.name.as_str().into()],
                    },
                    is_page: false,
                }),
            }
        }
    }
    let left_out = (left_out > 0).then(|| {
        phrase!(
            "{count blog} left out: no feed is known",
            "フィードが不明な {count} 件のブログは含まれていません",
            count = left_out
        )
    });
    Ok(Rendered { text: opml::render("tsuzuki", &feeds), count: feeds.len(), left_out })
}
