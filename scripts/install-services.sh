#!/bin/sh
# Dovecot, PostgreSQL and Chromium for the tests, from Debian's packages where apt is there and we may use it.
# Elsewhere the tests that need them say so and are skipped; with CI set they fail.
set -eu

have_dovecot() { command -v dovecot >/dev/null 2>&1 || [ -x /usr/sbin/dovecot ]; }
have_postgres() { ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1; }

have_chromium() { command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1; }

wanted=""
have_dovecot || wanted="$wanted dovecot-imapd"
have_postgres || wanted="$wanted postgresql"
have_chromium || wanted="$wanted chromium"
command -v openssl >/dev/null 2>&1 || wanted="$wanted openssl"
[ -n "$wanted" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "No apt here: install$wanted by hand to run all tests." >&2
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "Not root: run 'sudo apt-get install$wanted' to run all tests." >&2
    exit 0
fi
echo "Installing$wanted ..."
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $wanted >/dev/null
