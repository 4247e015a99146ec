//! Names of elements: namespaces by address and by well-known prefix, and the meaning of elements.

/// A namespace, as far as it matters for feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// RSS of any version, Atom of any version, or none.
    Core,
    Atom,
    DublinCore,
    DublinTerms,
    Content,
    Media,
    Itunes,
    Rdf,
    Xhtml,
    Admin,
    /// `xml:` itself.
    Xml,
    /// Any other namespace.
    Other,
}

/// The namespace of an address; spelling variants, case and a missing final slash do not matter.
pub(super) fn space_of_uri(uri: &str) -> Space {
    let lower = uri.trim().to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")).unwrap_or(&lower);
    match rest.trim_end_matches(['/', '#']) {
        "www.w3.org/2005/atom"
        | "purl.org/atom/ns"
        | "purl.org/atom"
        | "example.com/newformat"
        | "example.com/necho"
        | "purl.org/echo"
        | "uri/of/echo/namespace"
        | "purl.org/pie"
        | "www.w3.org/2005/atom/ns" => Space::Atom,
        ""
        | "purl.org/rss/1.0"
        | "my.netscape.com/rdf/simple/0.9"
        | "my.netscape.com/publish/formats/rss-0.91.dtd"
        | "backend.userland.com/rss"
        | "backend.userland.com/rss2"
        | "backend.userland.com/rss091"
        | "blogs.law.harvard.edu/tech/rss"
        | "cyber.law.harvard.edu/rss"
        | "www.rssboard.org/rss-specification"
        | "channel.netscape.com/rdf/simple/0.9" => Space::Core,
        "purl.org/dc/elements/1.1"
        | "purl.org/dc/elements/1.0"
        | "purl.org/metadata/dublin_core"
        | "purl.org/dc" => Space::DublinCore,
        "purl.org/dc/terms" => Space::DublinTerms,
        "purl.org/rss/1.0/modules/content" => Space::Content,
        "search.yahoo.com/mrss"
        | "search.yahoo.com/mrss/rss"
        | "video.search.yahoo.com/mrss"
        | "www.rssboard.org/media-rss" => Space::Media,
        "www.itunes.com/dtds/podcast-1.0.dtd" | "example.com/dtds/podcast-1.0.dtd" => Space::Itunes,
        "www.w3.org/1999/02/22-rdf-syntax-ns" => Space::Rdf,
        "www.w3.org/1999/xhtml" => Space::Xhtml,
        "webns.net/mvcb" => Space::Admin,
        "www.w3.org/xml/1998/namespace" => Space::Xml,
        _ => Space::Other,
    }
}

/// The usual namespace of a prefix, for documents that do not declare it.
pub(super) fn space_of_prefix(prefix: &str) -> Space {
    match prefix.to_ascii_lowercase().as_str() {
        "rss" => Space::Core,
        "atom" | "atom10" | "atom03" | "a10" => Space::Atom,
        "dc" => Space::DublinCore,
        "dcterms" | "dct" => Space::DublinTerms,
        "content" => Space::Content,
        "media" => Space::Media,
        "itunes" => Space::Itunes,
        "rdf" => Space::Rdf,
        "xhtml" | "html" => Space::Xhtml,
        "admin" => Space::Admin,
        "xml" => Space::Xml,
        _ => Space::Other,
    }
}

/// The meaning of an element in any dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Root,
    Channel,
    Entry,
    Source,
    Image,
    TextInput,
    MediaGroup,
    MediaContent,
    MediaTitle,
    MediaDescription,
    MediaThumbnail,
    Title,
    Link,
    Id,
    Description,
    Summary,
    ItunesSummary,
    Subtitle,
    Info,
    Content,
    Encoded,
    Published,
    Updated,
    Created,
    LastBuild,
    Author,
    Creator,
    ManagingEditor,
    WebMaster,
    Contributor,
    Name,
    Email,
    PersonUrl,
    Category,
    Subject,
    Keywords,
    ItunesCategory,
    Enclosure,
    ItunesImage,
    Icon,
    Logo,
    Url,
    Language,
    Rights,
    Generator,
    GeneratorAgent,
    Ttl,
    Comments,
    Unknown,
}

/// The meaning of an element; names are compared without case.
pub(super) fn field(space: Space, local: &str) -> Field {
    let mut buffer = [0_u8; 20];
    let Some(lower) = buffer.get_mut(..local.len()) else { return Field::Unknown };
    lower.copy_from_slice(local.as_bytes());
    lower.make_ascii_lowercase();
    let Ok(name) = std::str::from_utf8(lower) else { return Field::Unknown };
    match space {
        Space::Core | Space::Atom => core(name),
        Space::DublinCore => dublin_core(name),
        Space::DublinTerms => dublin_terms(name),
        Space::Content if name == "encoded" => Field::Encoded,
        Space::Media => media(name),
        Space::Itunes => itunes(name),
        Space::Rdf if name == "rdf" => Field::Root,
        Space::Xhtml if name == "body" => Field::Content,
        Space::Admin if name == "generatoragent" => Field::GeneratorAgent,
        _ => Field::Unknown,
    }
}

fn core(name: &str) -> Field {
    match name {
        "title" => Field::Title,
        "link" => Field::Link,
        "item" | "entry" => Field::Entry,
        "description" => Field::Description,
        "guid" | "id" => Field::Id,
        "pubdate" | "published" | "issued" => Field::Published,
        "updated" | "modified" | "date" | "lastmod" => Field::Updated,
        "created" => Field::Created,
        "lastbuilddate" => Field::LastBuild,
        "category" => Field::Category,
        "content" | "body" | "fullitem" => Field::Content,
        "encoded" => Field::Encoded,
        "summary" | "abstract" => Field::Summary,
        "subtitle" | "tagline" => Field::Subtitle,
        "info" => Field::Info,
        "author" => Field::Author,
        "creator" => Field::Creator,
        "managingeditor" => Field::ManagingEditor,
        "webmaster" => Field::WebMaster,
        "contributor" => Field::Contributor,
        "name" => Field::Name,
        "email" => Field::Email,
        "uri" | "homepage" => Field::PersonUrl,
        "url" => Field::Url,
        "enclosure" => Field::Enclosure,
        "comments" => Field::Comments,
        "image" => Field::Image,
        "textinput" => Field::TextInput,
        "source" => Field::Source,
        "icon" => Field::Icon,
        "logo" => Field::Logo,
        "language" => Field::Language,
        "copyright" | "rights" => Field::Rights,
        "generator" => Field::Generator,
        "ttl" => Field::Ttl,
        "keywords" | "tags" => Field::Keywords,
        "rss" | "feed" | "rdf" | "xml" => Field::Root,
        "channel" => Field::Channel,
        _ => Field::Unknown,
    }
}

fn dublin_core(name: &str) -> Field {
    match name {
        "title" => Field::Title,
        "creator" => Field::Creator,
        "author" => Field::Author,
        "date" => Field::Updated,
        "subject" => Field::Subject,
        "description" => Field::Description,
        "language" => Field::Language,
        "rights" => Field::Rights,
        "contributor" => Field::Contributor,
        _ => Field::Unknown,
    }
}

fn dublin_terms(name: &str) -> Field {
    match name {
        "issued" | "date" | "available" => Field::Published,
        "modified" => Field::Updated,
        "created" => Field::Created,
        "title" => Field::Title,
        "creator" => Field::Creator,
        "abstract" | "description" => Field::Description,
        "subject" => Field::Subject,
        "rights" => Field::Rights,
        "contributor" => Field::Contributor,
        _ => Field::Unknown,
    }
}

fn media(name: &str) -> Field {
    match name {
        "group" => Field::MediaGroup,
        "content" => Field::MediaContent,
        "title" => Field::MediaTitle,
        "description" | "text" => Field::MediaDescription,
        "thumbnail" => Field::MediaThumbnail,
        "category" => Field::Category,
        "keywords" => Field::Keywords,
        _ => Field::Unknown,
    }
}

fn itunes(name: &str) -> Field {
    match name {
        "author" => Field::Creator,
        "owner" => Field::Contributor,
        "title" => Field::MediaTitle,
        "name" => Field::Name,
        "email" => Field::Email,
        "summary" | "subtitle" => Field::ItunesSummary,
        "category" => Field::ItunesCategory,
        "keywords" => Field::Keywords,
        "image" | "link" => Field::ItunesImage,
        _ => Field::Unknown,
    }
}
