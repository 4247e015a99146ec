//! Providers that are down, used up or locked, and budgets that are kept.

use super::*;
use tsuzuki::demo::gemini::Reply;
use tsuzuki::ledger::{Subject, quota};
use tsuzuki::llm::store as answers;
use tsuzuki::{params, sql};

on_both_databases! {
    async fn a_day_without_the_provider_costs_no_item_a_try(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 3", ..More::default() }).await;
        for slug in ["a", "b", "c"] {
            world.publish(slug, files(&[2000]));
        }
        world.gemini.always(Some(Reply::Status(503)));
        for _ in 0..100 {
            world.live(1).await;
            world.clock.advance(10 * MINUTE);
        }
        for slug in ["a", "b", "c"] {
            assert_eq!(world.standing(slug).await, "0/-/0");
            assert_eq!(world.story(slug).await, ["found"]);
        }
        let asked = world.gemini.questions().len();
        assert!((20..=30).contains(&asked), "rests grow to an hour: asked {asked} times in a day");
        world.gemini.always(None);
        world.clock.advance(HOUR);
        world.live(3).await;
        assert_eq!(world.posts().len(), 3);
        for slug in ["a", "b", "c"] {
            assert_eq!(world.standing(slug).await, "3/0/0");
        }
    }

    async fn the_quota_of_the_day_is_kept_and_work_resumes_by_itself(fixture) {
        let more = More { tables: "[quota.gemini]\nper_day = 3\n", job: "items_per_run = 9", ..More::default() };
        let world = World::new(&fixture, &more).await;
        for slug in ["a", "b"] {
            world.publish(slug, files(&[2000]));
        }
        let report = world.live(5).await.remove(4);
        assert_eq!(world.gemini.questions().len(), 3);
        assert!(report.waiting_until.is_some(), "{report:?}");
        let usage = world.db.read(|tx| quota::list_usage(tx, Some("gemini"), 5)).await.unwrap();
        assert_eq!(usage[0].count, 3);
        let standings = [world.standing("a").await, world.standing("b").await];
        assert!(standings.contains(&"2/-/0".to_owned()), "the item that waits has lost nothing: {standings:?}");
        world.clock.advance(DAY);
        world.live(2).await;
        assert_eq!(world.posts().len(), 2);
    }

    async fn a_model_that_is_used_up_keeps_no_other_from_being_asked(fixture) {
        let more = More { job: "items_per_run = 9", ..More::default() };
        let world = World::new(&fixture, &more).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(Reply::Usual);
        world.gemini.next(Reply::PerDay);
        let report = world.run().await;
        assert!(report.waiting_until.is_some(), "{report:?}");
        assert_eq!(world.standing("a").await, "2/-/0");
        world.publish("b", files(&[2000]));
        let asked = world.gemini.questions().len();
        let report = world.run().await;
        assert!(report.waiting_until.is_some() && report.summary.to_string().contains("/gemini-flash-latest` is paused"), "{report:?}");
        let questions = world.gemini.questions();
        assert_eq!(questions.len(), asked + 1, "the model that screens has a quota of its own");
        assert!(questions[asked].line.contains("flash-lite"), "{}", questions[asked].line);
        assert_eq!(world.standing("b").await, "2/-/0");
        world.clock.advance(DAY);
        world.live(2).await;
        assert_eq!(world.posts().len(), 2);
    }

    async fn a_quota_that_has_the_name_of_a_model_counts_that_model(fixture) {
        let tables = "[quota.\"gemini-flash-latest\"]\nper_day = 1\n";
        let world = World::new(&fixture, &More { tables, job: "items_per_run = 9", ..More::default() }).await;
        for slug in ["a", "b", "c"] {
            world.publish(slug, files(&[2000]));
        }
        let count = |world: &World, model: &str| world.gemini.questions().iter().filter(|asked| asked.line.contains(model)).count();
        for day in 1..=3 {
            world.live(2).await;
            assert_eq!((world.posts().len(), count(&world, "flash-lite-latest"), count(&world, "flash-latest")), (day, 3, day));
            world.clock.advance(DAY);
        }
    }

    async fn tokens_are_reserved_before_and_settled_after(fixture) {
        let more = More { llm: "budget = { tokens_per_day = 12000, tokens_per_job = 11000 }", job: "items_per_run = 9", ..More::default() };
        let world = World::new(&fixture, &more).await;
        world.publish("a", files(&[2000]));
        world.live(2).await;
        assert_eq!(world.posts().len(), 1);
        let now = world.clock.now();
        let date = now.minus(8 * HOUR).to_string()[..10].to_owned();
        let used = world.db.read(move |tx| answers::sum_usage(tx, "gemini", &date)).await.unwrap();
        assert_eq!((used.requests, used.tokens), (2, 300), "what the answers said they cost");
        // A budget below the size of a summary: no request, nothing is lost, and waiting does not help.
        let mut world = world;
        world.reconfigure(&More { llm: "budget = { tokens_per_job = 4000 }", job: "items_per_run = 9", ..More::default() }, &fixture);
        world.publish("b", files(&[2000]));
        let asked = world.gemini.questions().len();
        let report = world.run().await;
        assert!(report.summary.to_string().contains("tokens"), "{}", report.summary);
        assert_eq!(world.gemini.questions().len(), asked + 1, "the screening fits");
        assert_eq!(world.standing("b").await, "2/-/0");
        // The job prefers a post without a summary.
        let more = More { llm: "budget = { tokens_per_job = 4000 }", job: "items_per_run = 9\non_budget = \"post_without_summary\"", ..More::default() };
        world.reconfigure(&more, &fixture);
        world.live(1).await;
        assert_eq!(world.standing("b").await, "3/0/0");
        let post = world.posts().pop().unwrap();
        assert_eq!(post, format!("報道資料 b\n\n{}", world.ministry.page("b")));
    }

    async fn a_document_that_no_day_has_room_for_keeps_no_other_waiting(fixture) {
        let llm = "budget = { tokens_per_day = 20000 }";
        for (job, standing) in [("", "1/4/1"), ("on_budget = \"post_without_summary\"", "3/0/0"), ("post_rejected = true", "3/0/0")] {
            fixture.clock.set(crate::databases::test_start());
            crate::press::answers::reset(&fixture).await;
            let job = format!("items_per_run = 9\n{job}");
            let world = World::new(&fixture, &More { llm, job: &job, ..More::default() }).await;
            world.publish("huge", Shape::WithFiles(vec![("huge.pdf".into(), 1_000_000)]));
            world.clock.advance(MINUTE);
            world.publish("b", files(&[2000]));
            world.live(1).await;
            assert_eq!([world.standing("huge").await.as_str(), &world.standing("b").await], [standing, "3/0/0"], "{job}");
            assert_eq!(world.gemini.questions().len(), 3, "nothing was asked about what there is no room for");
        }
    }

    async fn a_budget_holds_with_a_provider_that_does_not_say_what_it_used(fixture) {
        // 12,000 tokens are enough for two estimates of a screening and a summary, and for eighty answers of 150.
        let budget = "budget = { tokens_per_day = 12000 }";
        let world = World::new(&fixture, &More { llm: budget, job: "items_per_run = 9", ..More::default() }).await;
        world.gemini.always(Some(Reply::Costing(serde_json::Value::Null)));
        for slug in ["a", "b", "c", "d", "e", "f"] {
            world.publish(slug, files(&[2000]));
        }
        let report = world.live(6).await.remove(5);
        assert!(report.summary.to_string().contains("tokens were used today"), "{}", report.summary);
        let asked = world.gemini.questions().len();
        assert!((1..=5).contains(&asked), "{asked} questions");
        assert!(!world.everything_recorded().await.contains("not what the API promises"));
        // The same for a compatible service that leaves it out.
        let openai = tsuzuki::demo::openai::OpenAi::start().await.unwrap();
        let local = format!(
            "[llm.local]\nkind = \"openai\"\nbase_url = \"{}\"\nscreen_model = \"small\"\nallow_private = [\"127.0.0.1\"]\n{budget}\n",
            openai.url
        );
        let mut world = world;
        world.reconfigure(&More { tables: &local, job: "llm = \"local\"\nitems_per_run = 9", ..More::default() }, &fixture);
        let verdict = "{\"verdict\":\"not_ready\",\"reason\":\"later\",\"criteria\":[]}";
        for _ in 0..20 {
            openai.next_raw(200, serde_json::json!({
                "choices": [{ "message": { "content": verdict }, "finish_reason": "stop" }] }));
        }
        for number in 0..12 {
            world.publish(&format!("local-{number}"), files(&[2000]));
        }
        world.live(6).await;
        let asked = openai.log().len();
        assert!((1..=6).contains(&asked), "{asked} questions");
    }

    async fn a_service_that_takes_no_schema_is_told_it_in_words(fixture) {
        let openai = tsuzuki::demo::openai::OpenAi::start().await.unwrap();
        let local = |more: &str| format!(
            "[llm.local]\nkind = \"openai\"\nbase_url = \"{}\"\nscreen_model = \"small\"\nallow_private = [\"127.0.0.1\"]\n{more}\n",
            openai.url
        );
        let job = "llm = \"local\"\nitems_per_run = 9";
        let mut world = World::new(&fixture, &More { tables: &local(""), job, ..More::default() }).await;
        world.publish("a", files(&[2000]));
        let refusal = serde_json::json!({ "error": { "message": "This response_format type is unavailable now", "param": "response_format" } });
        openai.next_raw(400, refusal);
        assert!(matches!(failed(world.finish().await), Failure::Config(why) if why.to_string().contains("response_format")));
        // The pause ends with the config that brought it about.
        world.reconfigure(&More { tables: &local("json_schema = false"), job, ..More::default() }, &fixture);
        openai.next("{\"criteria\":[],\"reason\":\"資料あり\",\"verdict\":\"worth\"}");
        openai.next("{\"key_points\":[],\"draft\":\"\",\"missing\":[],\"final\":\"調査の結果を公表した。\"}");
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/0");
        let asked = openai.log();
        assert_eq!(asked[0].body["response_format"]["type"], "json_schema");
        assert_eq!(asked[1].body["response_format"], serde_json::json!({ "type": "json_object" }));
        assert!(asked[1].body["messages"][0]["content"].as_str().unwrap().contains("\"not_ready\""), "{}", asked[1].text);
    }

    async fn an_answer_that_cannot_be_read_has_been_paid_for(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 1", ..More::default() }).await;
        let used = async || {
            let date = world.clock.now().minus(8 * HOUR).to_string()[..10].to_owned();
            world.db.read(move |tx| answers::sum_usage(tx, "gemini", &date)).await.unwrap()
        };
        world.publish("a", files(&[2000]));
        world.gemini.next(Reply::Status(503));
        world.run().await;
        assert_eq!((used().await.requests, used().await.tokens), (1, 0), "a refusal costs nothing");
        world.clock.advance(HOUR);
        world.gemini.next(Reply::Garbage);
        world.run().await;
        assert!(used().await.tokens > 500, "{:?}", used().await);
    }

    async fn why_a_provider_rests_is_known_whatever_its_story_says(fixture) {
        let mut world = World::new(&fixture, &More::default()).await;
        world.publish("a", files(&[2000]));
        let good = config_text(&world.ministry, &world.gemini, &world.mastodon, &More::default());
        world.config = read_config(&good.replace(gemini::KEY, "wrong-key-that-is-secret"));
        world.env = fast_parts(&world.config, &fixture);
        failed(world.finish().await);
        // History is pruned, or another event of the provider is recorded.
        let now = world.clock.now();
        world.db.write(move |tx| {
            tx.execute(sql!("DELETE FROM events"), params![])?;
            event::add(tx, None, &Subject::provider("gemini"), "noted", &serde_json::json!({}), now)
        }).await.unwrap();
        let again = failed(world.finish().await);
        assert!(matches!(&again, Failure::Credentials(_)), "{again:?}");
    }

    async fn a_refused_key_rests_the_provider_until_it_changes(fixture) {
        let mut world = World::new(&fixture, &More::default()).await;
        world.publish("a", files(&[2000]));
        let good = config_text(&world.ministry, &world.gemini, &world.mastodon, &More::default());
        let bad = good.replace(gemini::KEY, "wrong-key-that-is-secret");
        world.config = read_config(&bad);
        world.env = fast_parts(&world.config, &fixture);
        let failure = failed(world.finish().await);
        assert!(matches!(&failure, Failure::Credentials(why) if why.to_string().contains("API key not valid")), "{failure:?}");
        assert!(failure.to_string().starts_with("1 new; [llm.gemini]: "), "what was done, and whose key it is: {failure}");
        assert!(!format!("{failure:?}{}", world.everything_recorded().await).contains("wrong-key"));
        world.clock.advance(5 * MINUTE);
        let again = failed(world.finish().await);
        assert!(matches!(&again, Failure::Credentials(_)), "it is still locked, and said so: {again:?}");
        assert_eq!(world.gemini.questions().len(), 1, "it is not asked again");
        world.config = read_config(&good);
        world.env = fast_parts(&world.config, &fixture);
        world.live(2).await;
        assert_eq!(world.standing("a").await, "3/0/0");
    }

    async fn larger_files_go_through_the_files_api_and_are_deleted(fixture) {
        let more = More { llm: "inline_max = \"8 KiB\"", job: "items_per_run = 2", ..More::default() };
        let world = World::new(&fixture, &more).await;
        world.publish("a", files(&[9000, 20000]));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/0");
        assert!(world.gemini.files().is_empty(), "uploads are deleted after use");
        let log = world.gemini.log();
        let sizes: Vec<usize> = log.iter().filter(|asked| asked.line == "POST /upload/session").map(|asked| asked.bytes).collect();
        assert_eq!(sizes, [9000, 20000]);
        let summary = world.gemini.questions().pop().unwrap();
        assert!(summary.body["contents"][0]["parts"][2]["fileData"]["fileUri"].as_str().unwrap().contains("upload-2"));
        assert!(log.iter().all(|asked| asked.key.as_deref() == Some(gemini::KEY) && !asked.line.contains("key=")));
        // Small ones travel inside the request.
        world.publish("b", files(&[1000]));
        world.live(1).await;
        assert!(world.gemini.questions().pop().unwrap().body["contents"][0]["parts"][1]["inlineData"]["data"].is_string());
    }

    async fn a_rejected_summary_can_be_posted_as_title_and_link(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 2\npost_rejected = true", ..More::default() }).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(Reply::Usual);
        world.gemini.next(Reply::Finish("SAFETY"));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/0");
        assert_eq!(world.posts(), [format!("報道資料 a\n\n{}", world.ministry.page("a"))]);
    }

    async fn a_compatible_service_is_asked_in_its_own_words(fixture) {
        let openai = tsuzuki::demo::openai::OpenAi::start().await.unwrap();
        let mut world = World::new(&fixture, &More::default()).await;
        let local = format!(
            "[llm.local]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key = \"sk-local-secret\"\nscreen_model = \"small\"\n\
             summary_model = \"large\"\nallow_private = [\"127.0.0.1\"]\n",
            openai.url
        );
        world.reconfigure(&More { tables: &local, job: "llm = \"local\"\nitems_per_run = 2\nattachments = [\"pdf\", \"csv\"]", ..More::default() }, &fixture);
        world.ministry.instead("/main_content/data.csv", "text/csv", "年,世帯\n2025,100\n");
        world.ministry.instead("/main_content/report.pdf", "application/pdf", include_bytes!("../../fixtures/pdf/reportlab_90ms_rksj.pdf"));
        world.ministry.publish("a", "統計", Some(world.clock.now()), Shape::WithFiles(vec![("data.csv".into(), 1), ("report.pdf".into(), 2000), ("scan.pdf".into(), 2000)]));
        openai.next_raw(429, serde_json::json!({ "error": { "code": "rate_limit_exceeded", "message": "slow down sk-local-secret" } }));
        let report = world.run().await;
        assert_eq!(report.waiting_until, Some(world.clock.now().plus(MINUTE)));
        assert!(!format!("{report:?}{}", world.everything_recorded().await).contains("sk-local-secret"));
        world.clock.advance(MINUTE);
        openai.next("{\"verdict\":\"worth\",\"reason\":\"統計\",\"criteria\":[]}");
        openai.next("{\"key_points\":[],\"draft\":\"\",\"missing\":[],\"final\":\"世帯の数を公表した。\"}");
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/0");
        assert!(world.posts()[0].contains("世帯の数を公表した。"), "{:?}", world.posts());
        let log = openai.log();
        assert_eq!(log[1].authorization.as_deref(), Some("Bearer sk-local-secret"));
        assert_eq!((log[1].body["model"].as_str(), log[2].body["model"].as_str()), (Some("small"), Some("large")));
        assert_eq!(log[2].body["response_format"]["json_schema"]["strict"], true);
        let text = log[2].body["messages"][1]["content"].as_str().unwrap();
        assert!(text.contains("2025,100"), "text files are put into the prompt: {text}");
        assert!(text.contains("report.pdf） (3 KiB／内容を添付)"), "{text}");
        assert!(text.contains("バス路線の維持状況を調べました（回答率92.4％）"), "so is the text of PDFs: {text}");
        assert_eq!(text.matches("<<<FILE ").count(), 2, "each in its fence: {text}");
        assert!(text.contains("scan.pdf） (2 KiB／画像のみで文字情報がないため内容なし)"), "or why there is none: {text}");
    }

    async fn what_is_not_set_is_left_to_the_model(fixture) {
        let mut world = World::new(&fixture, &More { job: "items_per_run = 2", ..More::default() }).await;
        world.publish("a", files(&[2000]));
        world.live(1).await;
        let questions = world.gemini.questions();
        assert!(questions[0].line.contains("/gemini-flash-lite-latest:"), "{}", questions[0].line);
        assert!(questions[1].line.contains("/gemini-flash-latest:"), "{}", questions[1].line);
        for asked in &questions {
            let keys: Vec<&String> = asked.body["generationConfig"].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["responseMimeType", "responseSchema"]);
        }
        let order = &questions[1].body["generationConfig"]["responseSchema"]["propertyOrdering"];
        assert_eq!(order, &serde_json::json!(["key_points", "draft", "missing", "final"]));
        // Set options are sent; a truncated answer gets more tokens, once.
        let llm = "temperature = 0.5\nmax_output_tokens = 3000\nthinking = \"low\"";
        world.reconfigure(&More { llm, job: "items_per_run = 1", ..More::default() }, &fixture);
        world.publish("b", files(&[2000]));
        world.gemini.next(Reply::Finish("MAX_TOKENS"));
        world.live(1).await;
        assert_eq!(world.standing("b").await, "2/-/0");
        let questions = world.gemini.questions().split_off(2);
        let sent: Vec<_> = questions.iter().map(|asked| &asked.body["generationConfig"]).collect();
        assert_eq!((&sent[0]["maxOutputTokens"], &sent[1]["maxOutputTokens"]), (&serde_json::json!(3000), &serde_json::json!(12000)));
        for sent in sent {
            assert_eq!((&sent["temperature"], &sent["thinkingConfig"]["thinkingLevel"]), (&serde_json::json!(0.5), &serde_json::json!("low")));
        }
    }

    async fn a_compatible_service_is_told_the_order_and_only_what_is_set(fixture) {
        let openai = tsuzuki::demo::openai::OpenAi::start().await.unwrap();
        let mut world = World::new(&fixture, &More::default()).await;
        let verdict = "{\"verdict\":\"not_ready\",\"reason\":\"\",\"criteria\":[]}";
        let tables = |more: &str| format!(
            "[llm.local]\nkind = \"openai\"\nbase_url = \"{}\"\nscreen_model = \"small\"\nallow_private = [\"127.0.0.1\"]\n{more}\n",
            openai.url
        );
        for (slug, more) in [("a", ""), ("b", "temperature = 1\nmax_output_tokens = 700\nthinking = \"minimal\"")] {
            world.publish(slug, files(&[2000]));
            world.reconfigure(&More { tables: &tables(more), job: "llm = \"local\"", ..More::default() }, &fixture);
            openai.next(verdict);
            world.live(1).await;
        }
        let log = openai.log();
        let keys: Vec<&String> = log[0].body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["messages", "model", "response_format"]);
        let at = |word: &str| log[0].text.rfind(&format!("\"{word}\":{{\"")).unwrap_or_else(|| panic!("{word}: {}", log[0].text));
        assert!(at("criteria") < at("reason") && at("reason") < at("verdict"), "{}", log[0].text);
        let set = &log[1].body;
        assert_eq!(
            (&set["temperature"], &set["max_completion_tokens"], &set["reasoning_effort"]),
            (&serde_json::json!(1.0), &serde_json::json!(700), &serde_json::json!("minimal"))
        );
    }

    async fn a_run_that_is_told_to_stop_does_not_wait_for_the_model(fixture) {
        let world = World::new(&fixture, &More::default()).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(Reply::Fault(tsuzuki::demo::faults::Fault::Hang));
        let stop = CancellationToken::new();
        let asked = async {
            while world.gemini.questions().is_empty() {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let (finished, ()) = tokio::join!(world.finish_unless(&stop), asked);
        assert!(matches!(failed(finished), Failure::Interrupted));
        assert_eq!(world.standing("a").await, "0/-/0");
        world.live(2).await;
        assert_eq!(world.standing("a").await, "3/0/0");
    }

    async fn a_provider_that_cannot_be_asked_costs_the_site_nothing(fixture) {
        let more = More { tables: "[quota.gemini]\nper_day = 0\n", ..More::default() };
        let world = World::new(&fixture, &more).await;
        world.publish("a", files(&[2000]));
        let report = world.live(5).await.remove(4);
        assert!(report.waiting_until.is_some());
        let pages = world.ministry.log().iter().filter(|line| line.contains("/menu_news/") || line.contains("/main_content/")).count();
        assert_eq!(pages, 0, "{:?}", world.ministry.log());
    }
}
