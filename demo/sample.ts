/** The sample project: its new repository, and GitHub's delivery of a push to it. */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { sign } from "@octokit/webhooks-methods";

const FILES = path.join(import.meta.dirname, "repository");

/**
 * Copies the sample into `directory` and commits it there.
 * @param add adds files to the commit
 * @throws if git is missing or refuses
 */
export const makeRepository = (directory: string, add: () => void = () => undefined): void => {
  cpSync(FILES, directory, { recursive: true });
  add();
  const git = (...args: readonly string[]) => {
    execFileSync("git", ["-C", directory, ...args], {
      stdio: ["ignore", "ignore", "pipe"],
      // The reader's own settings (signing, hooks, templates) do not apply.
      env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" },
    });
  };
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m", "Say hello");
};

export interface Delivery {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly repository: string;
  readonly pusher: string;
}

interface PushEvent {
  readonly ref: string;
  readonly head_commit: unknown;
  readonly pusher: { readonly name: string };
  readonly repository: { readonly full_name: string };
}

/** A push to a branch as GitHub delivers it: one of its own example payloads, signed with its own library. */
export const pushDelivery = async (secret: string, deliveryId: string): Promise<Delivery> => {
  const file = fileURLToPath(import.meta.resolve("@octokit/webhooks-examples"));
  const events = JSON.parse(readFileSync(file, "utf8")) as { name: string; examples: PushEvent[] }[];
  const push = events
    .find(({ name }) => name === "push")
    ?.examples.find(({ ref, head_commit }) => ref.startsWith("refs/heads/") && head_commit !== null);
  if (push === undefined) throw new Error("@octokit/webhooks-examples has no push to a branch");
  const body = JSON.stringify(push);
  return {
    body,
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/demo",
      "x-github-event": "push",
      "x-github-delivery": deliveryId,
      "x-hub-signature-256": await sign(secret, body),
    },
    repository: push.repository.full_name,
    pusher: push.pusher.name,
  };
};
