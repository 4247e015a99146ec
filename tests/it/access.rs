//! Credentials of people and programs, created on the command line.

use crate::test_env::{TestEnv, code, ends_with, err, out};

#[test]
fn a_token_is_shown_once_listed_without_its_secret_and_revoked_by_name() {
    let test_env = TestEnv::new("");
    let made = test_env.run(&["token", "create", "--name", "grafana", "--scope", "read"]);
    let secret = out(&made).trim().to_owned();
    assert!(code(&made) == 0 && secret.starts_with("tsuzuki_") && secret.len() > 40, "{secret}");
    assert!(err(&made).contains("not shown again"), "{}", err(&made));
    let again = test_env.run(&["token", "create", "--name", "grafana", "--scope", "act"]);
    assert!(ends_with(&again, 1).contains("token revoke grafana"));
    for listing in [&["token", "ls"][..], &["token", "ls", "--json"]] {
        let listed = out(&test_env.run(listing));
        assert!(
            listed.contains("grafana") && listed.contains("read") && !listed.contains(&secret),
            "{listed}"
        );
    }
    let stored = std::fs::read(test_env.file("tsuzuki.db")).unwrap();
    let stored = [stored, std::fs::read(test_env.file("tsuzuki.db-wal")).unwrap_or_default()].concat();
    assert!(!stored.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "only its hash is kept");
    assert!(test_env.ends("token revoke grafana", 0).contains("Revoked"));
    assert!(test_env.ends("token revoke grafana", 2).contains("no program has a token named"));
    for (name, scope) in [("grafana", "write"), ("0123abcd", "read"), ("a b", "read"), ("", "read")] {
        ends_with(&test_env.run(&["token", "create", "--name", name, "--scope", scope]), 2);
    }
}

#[test]
fn a_password_is_hashed_from_standard_input_and_the_config_takes_the_hash() {
    let test_env = TestEnv::new("");
    let hashed = test_env.run_with(&["config", "hash-password"], "pass word\n");
    let hash = out(&hashed).trim().to_owned();
    assert!(hash.starts_with("$argon2id$") && !hash.contains("pass word"), "{hash}");
    ends_with(&test_env.run_with(&["config", "hash-password"], "\n"), 2);
    let web = |listen: &str, more: &str| {
        test_env.write("tsuzuki.toml", &format!("[web]\nlisten = \"{listen}\"\n{more}"));
    };
    web("0.0.0.0:0", &format!("[web.auth]\nuser = \"me\"\npassword = '{hash}'\n"));
    test_env.ends("check", 0);
    web("0.0.0.0:0", "");
    let open = test_env.run(&["serve"]);
    let printed = ends_with(&open, 5);
    for way_out in ["[web.auth]", "sso_header", "127.0.0.1", "prompt_listen"] {
        assert!(printed.contains(way_out), "{way_out}: {printed}");
    }
    web("0.0.0.0:0", "sso_header = \"Remote-User\"\n");
    assert!(test_env.ends("check", 5).contains("trusted_proxies"));
    web("0.0.0.0:0", "sso_header = \"Remote-User\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n");
    test_env.ends("check", 0);
    web("127.0.0.1:0", "[web.auth]\nuser = \"me\"\npassword = '$argon2id$v=19$broken'\n");
    assert!(test_env.ends("serve", 5).contains("hash-password"));
}
