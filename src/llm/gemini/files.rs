//! The Files API: upload in one piece, wait until the file is ready, delete it after use.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Gemini, KEY_HEADER, judge, lost};
use crate::llm::call::{CallError, Line, ProviderPause, Repair, TokenUsage};
use crate::phrase;

/// How often, and at which interval, to poll whether an upload is ready.
const MAX_POLLS: u32 = 30;
const POLL_EVERY: Duration = Duration::from_secs(2);
/// Deleting is optional: the server deletes files after two days.
const DELETE_WITHIN: Duration = Duration::from_secs(20);

/// An uploaded file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Upload {
    /// `files/…`, for polling and deleting.
    name: String,
    /// For the prompt.
    pub(super) uri: String,
    #[serde(default)]
    state: String,
}

#[derive(Deserialize)]
struct Uploaded {
    file: Upload,
}

impl Gemini {
    /// Uploads a file and waits until it is ready.
    pub(super) async fn upload(
        &self,
        line: &Line<'_>,
        path: &Path,
        media_type: &str,
    ) -> Result<Upload, CallError> {
        let file = tokio::fs::File::open(path).await.map_err(|error| lost(&error))?;
        let bytes = file.metadata().await.map_err(|error| lost(&error))?.len();
        let start = self.url("upload/v1beta/files")?;
        let request = line
            .client(&start)?
            .post(start.clone())
            .header(KEY_HEADER, self.key()?)
            .header("x-goog-upload-protocol", "resumable")
            .header("x-goog-upload-command", "start")
            .header("x-goog-upload-header-content-length", bytes)
            .header("x-goog-upload-header-content-type", media_type)
            .json(&json!({ "file": { "displayName": "attachment" } }));
        let answer = line.ask(request, self.config.timeout(), judge).await?;
        let target = answer.headers.get("x-goog-upload-url").and_then(|value| value.to_str().ok());
        let target = target.and_then(|target| Url::parse(target).ok());
        // Send the file and our key only to the origin that we started with.
        let Some(target) = target.filter(|target| target.origin() == start.origin()) else {
            return Err(ProviderPause::down(phrase!(
                "the Files API names no usable place to upload to",
                "Files API からアップロード先が示されませんでした"
            ))
            .into());
        };
        let request = line
            .client(&target)?
            .post(target)
            .header(KEY_HEADER, self.key()?)
            .header("content-length", bytes)
            .header("x-goog-upload-offset", 0)
            .header("x-goog-upload-command", "upload, finalize")
            .body(reqwest::Body::from(file));
        let answer = line.ask(request, self.config.timeout() * 2, judge).await?;
        let uploaded: Uploaded = serde_json::from_slice(&answer.body).map_err(|_| {
            ProviderPause::down(phrase!(
                "the Files API does not say where the upload went",
                "Files API からアップロードの結果が示されませんでした"
            ))
        })?;
        self.wait_until_usable(line, uploaded.file).await
    }

    async fn wait_until_usable(&self, line: &Line<'_>, mut upload: Upload) -> Result<Upload, CallError> {
        for _ in 0..MAX_POLLS {
            match upload.state.as_str() {
                "ACTIVE" | "" => return Ok(upload),
                "FAILED" => {
                    self.delete(line, &upload).await;
                    let why = phrase!(
                        "the provider cannot read the file",
                        "プロバイダーがファイルを読み込めません"
                    );
                    return Err(CallError::Unusable {
                        why,
                        usage: TokenUsage::Nothing,
                        repair: Repair::None,
                    });
                }
                _ => tokio::time::sleep(POLL_EVERY).await,
            }
            let url = self.url(&format!("v1beta/{}", upload.name))?;
            let request = line.client(&url)?.get(url).header(KEY_HEADER, self.key()?);
            let answer = line.ask(request, self.config.timeout(), judge).await?;
            upload = serde_json::from_slice(&answer.body).map_err(|_| {
                ProviderPause::down(phrase!(
                    "the Files API does not say how the upload is",
                    "Files API からアップロードの状態が示されませんでした"
                ))
            })?;
        }
        self.delete(line, &upload).await;
        Err(ProviderPause::down(phrase!(
            "the Files API did not get ready with an upload",
            "Files API のアップロードの準備が終わりませんでした"
        ))
        .into())
    }

    /// Deletes an upload; ignores failures.
    pub(super) async fn delete(&self, line: &Line<'_>, upload: &Upload) {
        let outcome = async {
            let url = self.url(&format!("v1beta/{}", upload.name))?;
            let request = line.client(&url)?.delete(url).header(KEY_HEADER, self.key()?);
            line.send(request, DELETE_WITHIN).await
        }
        .await;
        if !outcome.is_ok_and(|answer| answer.is_success()) {
            tracing::debug!("An upload could not be deleted; the provider does it in two days");
        }
    }
}
