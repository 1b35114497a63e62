/**
 * The just-in-time clone credential (spec.md 4.2, 5.3; api.md 6 and 7). The daemon fetches it with PLATFORM_TOKEN and
 * writes it where the agent's git finds it through a credential helper. It never appears in a URL, an argument,
 * `.git/config`, a log or an error text. It is renewed at 80 % of its lifetime, and before a refused clone is retried.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { writeForAgent } from "../files.ts";
import { callJson, type HttpFailure } from "../http/client.ts";
import { GitCredential } from "../../src/domain/sandbox/launch.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { Settings } from "../settings.ts";

/** The part of the answer that the daemon keeps. Only the credential file contains name and password. */
export interface CloneCredential {
  readonly repoUrl: string;
  readonly expiresAtMs: number;
  /** `done`: the initial prompt was accepted in an earlier boot. */
  readonly bootstrap: "pending" | "done";
}

const CALL_TIMEOUT_MS = 10_000;
/** When a credential is renewed, as a share of its lifetime. */
const RENEW_AT = 0.8;
/** The shortest pause between two renewals, whatever lifetime the answer claims. */
const RENEW_MIN_MS = 1000;

/** Fetches a credential and stores it where the agent's git looks for it. */
export const fetchCredential = (
  settings: Settings,
  redactor: Redactor,
): Effect.Effect<CloneCredential, HttpFailure> =>
  callJson(
    {
      url: `${settings.apiUrl}/projects/${settings.projectId}/git/clone-credential`,
      headers: { authorization: `Bearer ${settings.token}` },
      timeoutMs: CALL_TIMEOUT_MS,
      proxyEnv: settings.launch.commonEnv,
    },
    GitCredential,
  ).pipe(Effect.map((answer) => storeCredential(settings, redactor, answer)));

/** Stores a credential where the agent's git looks for it. */
export const storeCredential = (
  settings: Settings,
  redactor: Redactor,
  answer: typeof GitCredential.Type,
): CloneCredential => {
  const { username, password } = answer.auth;
  redactor.add(password);
  writeForAgent(settings.layout.credentialFile, `username=${username}\npassword=${password}\n`);
  writeForAgent(settings.layout.gitConfigFile, gitConfig(settings, answer.repo_url));
  return {
    repoUrl: answer.repo_url,
    expiresAtMs: Date.parse(answer.expires_at),
    bootstrap: answer.bootstrap,
  };
};

/**
 * Keeps the credential file fresh while it runs: at 80 % of a credential's lifetime, and when git was refused with it.
 * A failed renewal is retried with backoff.
 */
export const renewCredential = Effect.fnUntraced(function* (
  first: CloneCredential,
  fetch: Effect.Effect<CloneCredential, HttpFailure>,
  refusal: Effect.Effect<void>,
): Effect.fn.Return<never> {
  let current = first;
  while (true) {
    const lifeMs = current.expiresAtMs - (yield* Clock.currentTimeMillis);
    const due = Effect.sleep(Math.max(RENEW_MIN_MS, lifeMs * RENEW_AT));
    // The pause applies because the agent can report refusals as often as it likes.
    yield* Effect.raceFirst(due, Effect.andThen(Effect.sleep(RENEW_MIN_MS), refusal));
    current = yield* Effect.retryOrElse(fetch, renewBackoff, () => Effect.succeed(current));
  }
});

/** 1 s doubling, five times. Then the outer loop continues with the remaining lifetime. */
const renewBackoff = Schedule.max([Schedule.exponential("1 second"), Schedule.recurs(5)]);

/**
 * The system configuration of every git that runs as the agent. The agent's own configuration may override it. The
 * helper answers only for the platform's host. The machine's own system configuration stays in force.
 */
const gitConfig = (settings: Settings, repoUrl: string): string => `[include]
\tpath = /etc/gitconfig
[safe]
\tdirectory = ${settings.layout.workspace}
[user]
\tname = ${quote(settings.agentName)}
\temail = ${quote(`${settings.agentName}@${settings.sessionId}.platform.internal`)}
[push]
\tdefault = current
[credential ${quote(new URL(repoUrl).origin)}]
\thelper = ${quote(helper(settings.layout))}
`;

/** Git calls it with `get`, and with `erase` when the credential was refused. */
const helper = ({ credentialFile, rejectionPipe }: Settings["layout"]): string =>
  `!f() { case "$1" in get) cat '${credentialFile}' ;; erase) echo > '${rejectionPipe}' ;; esac; }; f`;

/** A value in git's configuration syntax. */
const quote = (value: string): string => JSON.stringify(value);
