/** How another system is set up to send a webhook trigger its deliveries: GitHub, a job of GitLab, and a line of curl. */
import { h, outside } from "./dom.js";
import { button, callout, code, commandBlock, commandLine, refusedLink, tag } from "./parts.js";

/** @typedef {import("./wire.d.ts").Trigger} Trigger */
/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {{project: Project, secrets: Map<string, boolean> | null}} Known */

/** Addresses that only this machine, or only its network, can reach. */
const NEAR = /^https?:\/\/(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[)/;

/** @param {string} text @returns {string} as one word of a shell */
const word = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The name of an event, without its action. @param {string} event */
const eventName = (event) => event.replace(/\.[a-z_]+$/, "");

/** @param {Trigger} trigger @returns {string[]} the events that its filter lets pass; empty for all */
export const eventsOf = ({ filter }) => [...new Set((filter?.events ?? []).map(eventName))];

/** A branch that the pattern matches. @param {string} pattern */
const branchOf = (pattern) => pattern.replaceAll(/\*+/g, "x");

/** @param {Record<string, any>} body @param {string[]} path @param {unknown} value */
const put = (body, [first = "", ...rest], value) => {
  if (rest.length === 0) body[first] = value;
  else {
    if (typeof body[first] !== "object" || body[first] === null) body[first] = Object.create(null);
    put(body[first], rest, value);
  }
};

/**
 * The smallest delivery that passes the trigger's filter. Conditions on list elements and on headers are left out.
 *
 * @param {Trigger} trigger
 * @returns {{event: string, body: Record<string, unknown>}}
 */
export const sampleDelivery = ({ filter }) => {
  const [asked = "push"] = filter?.events ?? [];
  /** @type {Record<string, unknown>} */
  const body = Object.create(null);
  const branch = branchOf(filter?.branches?.[0] ?? "main");
  const action = asked.slice(eventName(asked).length + 1);
  if (action !== "") body["action"] = action;
  if (eventName(asked) === "pull_request") put(body, ["pull_request", "base", "ref"], branch);
  else body["ref"] = `refs/heads/${branch}`;
  for (const [path, value] of Object.entries(filter?.if ?? {})) {
    const [root, ...rest] = path.split(".");
    if (root === "body" && rest.length > 0) put(body, rest, value);
  }
  return { event: eventName(asked), body };
};

/** A delivery by hand: lines that work when they are pasted. @param {Trigger} trigger */
export const curlLines = (trigger) => {
  const { event, body } = sampleDelivery(trigger);
  return [
    `SECRET=${word(`the value of ${trigger.secret_env ?? ""}`)}`,
    `BODY=${word(JSON.stringify(body))}`,
    String.raw`SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/^.* //')`,
    `curl -sS ${word(trigger.webhook_url ?? "")} \\`,
    `  -H 'content-type: application/json' -H ${word(`x-platform-event: ${event}`)} \\`,
    `  -H "x-platform-signature: sha256=$SIGNATURE" --data-binary "$BODY"`,
  ].join("\n");
};

/** A job of GitLab that signs what it sends. @param {Trigger} trigger */
export const gitlabLines = (trigger) => {
  const { event } = sampleDelivery(trigger);
  const secret = trigger.secret_env ?? "";
  return [
    `notify-${trigger.slug}:`,
    "  image: alpine:3",
    "  rules:",
    `    - if: $CI_PIPELINE_SOURCE == "push" && $CI_COMMIT_BRANCH`,
    "  script:",
    "    - apk add --no-cache curl jq openssl",
    "    - |",
    String.raw`      BODY=$(jq -nc --arg ref "refs/heads/$CI_COMMIT_BRANCH" --arg sha "$CI_COMMIT_SHA" \ `.trimEnd(),
    `        --arg message "$CI_COMMIT_MESSAGE" '{ref: $ref, after: $sha, head_commit: {id: $sha, message: $message}}')`,
    `      SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$${secret}" | sed 's/^.* //')`,
    `      curl --fail-with-body -sS ${word(trigger.webhook_url ?? "")} \\`,
    `        -H 'content-type: application/json' -H ${word(`x-platform-event: ${event}`)} \\`,
    `        -H "x-platform-delivery: $CI_JOB_ID" -H "x-platform-signature: sha256=$SIGNATURE" --data-binary "$BODY"`,
  ].join("\n");
};

/** @param {Trigger} trigger @param {Known} known */
export const sendersView = (trigger, known) =>
  h(
    "details",
    { class: "senders", "data-key": "senders" },
    h("summary", {}, "Set up a sender"),
    h(
      "div",
      { class: "sender-list" },
      secretPart(trigger, known),
      NEAR.test(trigger.webhook_url ?? "") &&
        callout(
          "warn",
          "The address is only reachable from this machine or its network. For senders on the internet, the operator sets ",
          code("PLATFORM_PUBLIC_URL"),
          " to a public address.",
        ),
      sender("GitHub", gitHubSteps(trigger, known)),
      sender("GitLab", gitLabSteps(trigger)),
      sender("curl", curlSteps(trigger)),
      h(
        "p",
        { class: "quiet" },
        "A delivery that the service does not accept is in ",
        h("a", { href: refusedLink(known.project.id) }, "Refused deliveries"),
        ", with the reason. An accepted one is in the runs.",
      ),
    ),
  );

/** @param {string} name @param {Child[]} content */
const sender = (name, content) =>
  h(
    "details",
    { class: "group", "data-key": name },
    h("summary", {}, name),
    h("div", { class: "sender-steps" }, content),
  );

/** @param {Trigger} trigger @param {Known} known */
const secretPart = ({ secret_env: name = "" }, { project, secrets }) =>
  h(
    "p",
    { class: "parts" },
    h("span", {}, "The sender signs with the value of ", code(name), "."),
    secrets !== null && !secrets.has(name) && tag("has no value", "bad"),
    h(
      "span",
      { class: "quiet" },
      "The service never shows it again, so give it to the sender when you make it.",
    ),
    secrets !== null &&
      button("make-webhook-secret", "Make a new value", {
        class: "plain",
        "data-project": project.id,
        "data-secret": name,
        "data-rotates": secrets.has(name) ? "yes" : "",
        "aria-label": `Make a new value of ${name}`,
      }),
  );

/** @param {...(Child | Child[])} steps */
const ordered = (...steps) =>
  h(
    "ol",
    { class: "step-list" },
    steps.map((step) => h("li", {}, step)),
  );

/** @param {Project} project @returns {string | null} the page at GitHub that adds a webhook */
const gitHubPage = ({ repository }) =>
  repository.kind === "github" && repository.api_url === undefined
    ? `https://github.com/${encodeURIComponent(repository.owner)}/${encodeURIComponent(repository.name)}/settings/hooks/new`
    : null;

/** @param {Trigger} trigger @param {Known} known @returns {Child[]} */
const gitHubSteps = (trigger, { project }) => {
  const page = gitHubPage(project);
  const events = eventsOf(trigger);
  return [
    ordered(
      page === null
        ? "In the repository, open Settings, Webhooks, Add webhook."
        : ["Open ", outside(page, "Add webhook"), " in the repository's settings at GitHub."],
      ["Payload URL: ", commandLine(trigger.webhook_url ?? "")],
      ["Content type: ", commandLine("application/json")],
      ["Secret: the value of ", code(trigger.secret_env ?? ""), "."],
      "SSL verification: leave it enabled.",
      events.length === 0
        ? "Events: choose those that should start a session. The trigger has no filter by event, so each delivery starts one."
        : ["Events: choose Let me select individual events, and select ", ...listedCodes(events), "."],
      "Press Add webhook. GitHub sends a ping, and the service answers it with pong. The tab Recent Deliveries shows both.",
    ),
    h(
      "p",
      { class: "quiet" },
      "An answer 401 means that the secret differs, 404 that the trigger is disabled, paused or not on the default branch yet, and 409 that the secret has no value here.",
    ),
  ];
};

/** @param {string[]} names */
const listedCodes = (names) => names.map((name, at) => h("span", {}, at > 0 && ", ", code(name)));

/** @param {Trigger} trigger @returns {Child[]} */
const gitLabSteps = (trigger) => [
  h(
    "p",
    {},
    "A webhook of GitLab does not work with this address: the service answers it with 401. It accepts only a signature over the body alone.",
  ),
  h(
    "ul",
    { class: "dots" },
    h(
      "li",
      {},
      "GitLab's secret token is sent as it is, in the header ",
      code("X-Gitlab-Token"),
      ". It signs nothing.",
    ),
    h(
      "li",
      {},
      "GitLab's newer signing token signs the delivery's id, its time and the body together, in the header ",
      code("webhook-signature"),
      " (Standard Webhooks).",
    ),
  ),
  h("p", {}, "A job of the pipeline works. It signs what it sends:"),
  ordered(
    [
      "In the project, open Settings, CI/CD, Variables, and add ",
      code(trigger.secret_env ?? ""),
      " with the secret's value. Make it masked.",
    ],
    ["Add this job to ", code(".gitlab-ci.yml"), ":", commandBlock(gitlabLines(trigger), "the job")],
    "Push. The job's log shows the service's answer.",
  ),
];

/** @param {Trigger} trigger @returns {Child[]} */
const curlSteps = (trigger) => [
  h(
    "p",
    {},
    "Put the secret's value into the first line, and paste all of it into a shell. It sends a delivery that passes the trigger's filter, and each one starts a session.",
  ),
  commandBlock(curlLines(trigger), "the command"),
];
