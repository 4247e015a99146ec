//! The digest as a mail, through the real mail channel: two parts, one mail per recipient, delivered on acceptance.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::demo::google_books::{isbn, volumes};
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble};
use tsuzuki::engine::{Progress, Runner, Selection};
use tsuzuki::sql;

use crate::books_world::{self, World};
use crate::test_env::read_config;

on_both_databases! {
    async fn a_mail_has_both_parts_and_its_acceptance_is_the_delivery(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        let smtp = SmtpServer::start().await.unwrap();
        let text = world.text("max_per_run = 10\nfallback_limit = 0\ndeliver = [\"mail\"]") + &format!(
            "[web]\npublic_url = \"https://books.example.com\"\n\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"続き <bot@example.com>\"\n\
             to = [\"a@example.com\", \"b@example.com\"]\nallow_private = [\"127.0.0.1\"]\n",
            smtp.address
        );
        let app = App::new(&read_config(&text), world.db.clone()).unwrap();
        let runner = Runner::new(world.db.clone(), Progress::default());
        runner.run(app.jobs.clone(), Selection::Forced, &CancellationToken::new()).await;
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM outbox WHERE topic = 'books.digest'")).await, 2, "one per recipient");

        // The first recipient is refused, the second accepted: that is a delivery.
        smtp.next(Phase::Rcpt, Trouble::Say("550 5.1.1 no such user"));
        let report = books_world::send(&app).await;
        assert_eq!((report.sent, report.failed), (1, 1));
        assert_eq!(world.delivered().await.len(), 3);
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, 1);

        let mails = smtp.mails();
        assert_eq!(mails.len(), 1);
        let mail = &mails[0].data;
        assert!(mail.contains("multipart/alternative") && mail.contains("text/plain") && mail.contains("text/html"), "{mail}");
        let (_, plain) = mail.split_once("Content-Transfer-Encoding: base64").unwrap();
        let plain: String = plain.trim_start().lines().take_while(|line| !line.is_empty() && !line.starts_with("--")).collect();
        let plain = String::from_utf8(BASE64.decode(plain).unwrap()).unwrap();
        let (_, html) = mail.split_once("Content-Transfer-Encoding: quoted-printable").unwrap();
        let html = html.replace("=\r\n", "").replace("=\n", "").replace("=3D", "=");
        assert!(html.contains("?id=demo00000001&amp;printsec=frontcover\""), "an address is escaped once: {html}");
        assert!(!html.contains("&amp;amp;") && !html.contains("&#x2f;"), "{html}");
        let env = [plain, html];
        for part in &env {
            let plain = part;
            assert_eq!(plain.matches("https://books.example.com/p/").count(), 3, "{part}");
            assert!((0..3).all(|number| plain.contains(&isbn(number))), "each part is complete: {part}");
            assert!(plain.contains("2026-02-14 "), "until when its links work: {part}");
        }
        assert_eq!(mails[0].header("List-Id"), Some("<shelf.books.tsuzuki.localhost>"), "{mail}");
    }
}
