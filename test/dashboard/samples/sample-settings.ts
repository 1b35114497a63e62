/** The settings of the sample account and its project. */
import type { FakeSettings } from "../fakes/fake-settings.ts";
import { OPTIONS } from "./sample-options.ts";

const DAY = 86_400;

const DIFF = `diff --git a/bin/greet.sh b/bin/greet.sh
index 9daeafb..180cf83 100644
--- a/bin/greet.sh
+++ b/bin/greet.sh
@@ -1,6 +1,10 @@
 #!/bin/sh
 # Greets the person whose name is the first argument.
-printf 'Hello, %s!\\n' "\${1:-world}"
+if [ "$(date +%H)" -lt 12 ]; then
+  printf 'Good morning, %s!\\n' "\${1:-world}"
+else
+  printf 'Good day, %s!\\n' "\${1:-world}"
+fi
 
 # The names of all who were greeted, one a line.
 printf '%s\\n' "\${1:-world}" >> greeted.txt
diff --git a/notes/6113728.md b/notes/6113728.md
new file mode 100644
index 0000000..3b18e51
--- /dev/null
+++ b/notes/6113728.md
@@ -0,0 +1,3 @@
+# Initial commit
+
+Codertocat pushed the first commit of Hello-World.
`;

/** Two commits in two files. */
export const sampleWork = (now: number): NonNullable<FakeSettings["work"]> => ({
  changes: {
    base_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
    head_commit: "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5",
    commits_total: 2,
    commits: ["Greet by the time of the day", "Write notes/6113728.md"].map((subject, index) => ({
      sha: `${String(index)}f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5`,
      subject,
      author_name: "Agent",
      committed_at: new Date(now - (index + 1) * 40_000).toISOString(),
    })),
    files_changed_total: 2,
    files_changed: [
      { path: "bin/greet.sh", additions: 5, deletions: 1 },
      { path: "notes/6113728.md", additions: 3, deletions: 0 },
    ],
  },
  diff: DIFF,
});

const step = (name: string, outcome: string, message: string, advice: string | null = null) => ({
  step: name,
  outcome,
  message,
  advice,
});

const TRIED = [
  step("host", "passed", "The API at api.github.com answers."),
  step("credential", "passed", "The code host accepts the token."),
];

/** A check in which everything passed, and no webhook has arrived. */
export const CHECK_PASSED = {
  usable: true,
  default_branch: "main",
  steps: [
    ...TRIED,
    step("repository", "passed", "acme/greeter was found."),
    step("default_branch", "passed", "The branch main can be read."),
    step("push", "passed", "The credential may push."),
    step("pull_requests", "unknown", "Pull requests can be read. The first change request shows the rest."),
    step(
      "webhook",
      "unknown",
      "No delivery has arrived for on-push.",
      "Set up the webhook on GitHub as the trigger's page says.",
    ),
  ],
};

export const CHECK_FAILED = {
  usable: false,
  default_branch: null,
  steps: [
    ...TRIED,
    step(
      "repository",
      "failed",
      "The code host shows no repository acme/greeter to this credential.",
      "Check owner and name. A fine-grained token must list this repository, and an organization may have to approve the token.",
    ),
  ],
};

const PROVIDERS = [
  ["anthropic", "ANTHROPIC_API_KEY", "claude-large"],
  ["openai", "OPENAI_API_KEY", "gpt-5.5"],
] as const;

/** @param now ms since the epoch that the instants stand around */
export const sampleSettings = (
  now: number,
  projectId: string,
): Omit<FakeSettings, "ownCredentials" | "projects" | "sessions"> => {
  const at = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  const token = (id: string, name: string, rest: Readonly<Record<string, unknown>>) => ({
    id,
    name,
    origin: "user",
    user_id: "u",
    project_id: null,
    created_at: at(30 * DAY),
    expires_at: at(-60 * DAY),
    last_used_at: at(40),
    ...rest,
  });
  return {
    savedTurns: [],
    saves: { bytes: 0, sessions: [], away: [] },
    tokens: [
      token("t-session", "session …c2a90de", {
        origin: "session",
        project_id: projectId,
        expires_at: at(-DAY / 2),
      }),
      token("t", "first", { expires_at: null }),
      token("t-ci", "ci of the greeter, for the nightly builds", {
        project_id: projectId,
        user_id: "u-vera",
        last_used_at: null,
      }),
    ],
    setup: {
      repository: {
        url: `http://127.0.0.1:8080/v1/git/${projectId}.git`,
        branch: "main",
        commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        empty: false,
      },
      model: { required: true, model: "anthropic/claude-large", source: "secret" },
      providers: PROVIDERS.map(([id, secret, model], index) => ({
        id,
        secrets: [secret],
        model: `${id}/${model}`,
        configured: index === 0,
      })),
    },
    secrets: [],
    shortSecrets: [],
    options: OPTIONS,
    declared: { required: [], optional: [] },
    previousValidUntil: null,
    check: CHECK_PASSED,
    work: {
      changes: {
        base_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        commits_total: 0,
        commits: [],
        files_changed_total: 0,
        files_changed: [],
      },
      diff: "",
    },
  };
};
