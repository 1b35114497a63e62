/**
 * A project's outbound webhooks: systems and chats that hear of its events, and what each of them was sent. In the API,
 * these are the project's `webhooks`.
 */
import { getJson, getList, patch, post, remove } from "../api/api.js";
import { ask, tell } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import { formView } from "../elements/forms.js";
import {
  badge,
  button,
  callout,
  code,
  commandBlock,
  detail,
  empty,
  facts,
  listRow,
  projectLink,
  tag,
  time,
  trail,
} from "../elements/parts.js";
import { projectHead, projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Receiver} Receiver */
/** @typedef {import("../wire.d.ts").Delivery} Delivery */
/** @typedef {import("../wire.d.ts").Try} Try */

/** Each event, in words, and whether a new receiver hears of it. @type {[string, string, boolean][]} */
const EVENTS = [
  ["session.waiting", "A session waits for a person", true],
  ["session.turn_ended", "The agent has finished its turn", false],
  ["approval.waiting", "A tool call waits for approval", true],
  ["session.work_unsaved", "Not all work of a session can be saved", true],
  ["session.failed", "A session failed", true],
  ["session.stopped", "A session stopped", false],
  ["change_request.opened", "A change request was opened", true],
  ["change_request.review_requested", "A person is asked for a review", true],
  ["change_request.merged", "A change request was merged", false],
  ["change_request.closed", "A change request was closed", false],
  ["fire.failed", "A trigger's run could not start", true],
  ["fire.expired", "A trigger's run waited too long", false],
  ["queue.full", "The queue is full", true],
  ["manifest.stale", "The newest platform.toml cannot be read", true],
  ["webhook.disabled", "Another receiver was disabled", false],
];

/** @type {[string, string][]} */
const FORMATS = [
  ["standard", "JSON, signed as in Standard Webhooks"],
  ["slack", "A message to a Slack channel"],
  ["discord", "A message to a Discord channel"],
];

/** @type {Record<string, string>} */
const REASONS = {
  gone: "It answered 410: it is gone.",
  failing: "Every request failed for five days.",
  backlog: "10,000 deliveries wait for it.",
  requested: "A person disabled it.",
};

/** @param {string} project @param {string} [rest] */
const receiverPath = (project, rest = "") => `${projectPath(project)}/webhooks${rest}`;

const notifications = {
  /** @param {string[]} params @param {import("../frame/app.js").Extent} extent */
  load: async ([id = ""], { pages: shown }) => {
    const [project, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getList(receiverPath(id), "webhooks", shown),
    ]);
    return { project, receivers: items, more };
  },

  /** @param {{project: Project}} data */
  title: ({ project }) => `Notifications of ${project.name}`,

  /** @param {{project: Project, receivers: Receiver[], more: boolean}} data */
  view: ({ project, receivers, more }) => [
    ...projectHead(project, "/settings"),
    h("h2", { "data-key": "heading" }, "Notifications"),
    h(
      "p",
      { class: "quiet", "data-key": "about" },
      "Your own systems, Slack or Discord can hear of this project's events. A message has ids, names and a link to this page. It has no prompt, no text of an agent and no secret.",
    ),
    receivers.length === 0
      ? empty("No receivers yet.", "Add the address of a channel or of your own system below.")
      : h(
          "ul",
          { class: "rows", "data-key": "receivers" },
          receivers.map((one) => receiverRow(project.id, one)),
        ),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show more receivers")),
    h("section", { "data-key": "add" }, h("h2", {}, "Add a receiver"), receiverForm(project.id)),
  ],
};

/** @param {string} project @param {Receiver} receiver */
const receiverRow = (project, receiver) => {
  const { id, url, format, events, status, disabled_reason: why, warning, failing_since: failing } = receiver;
  const link = projectLink(project, `/notifications/${id}`);
  return listRow(
    id,
    [
      h("a", { href: link, class: "named" }, code(url)),
      detail(events.map((event) => EVENTS.find(([name]) => name === event)?.[1] ?? event).join(" · ")),
      lastView(receiver.last_delivery),
      (why !== null || warning !== null) &&
        h("span", { class: "reason" }, (why !== null && REASONS[why]) || why || warning),
    ],
    {
      states: [
        tag(format),
        status === "disabled" && tag("disabled", "bad"),
        status === "enabled" && failing !== null && tag("failing", "warn"),
      ],
      actions: [
        receiverButton(project, receiver, ["test-receiver", "Send a test"]),
        receiverButton(
          project,
          receiver,
          status === "enabled" ? ["disable-receiver", "Disable"] : ["enable-receiver", "Enable"],
        ),
      ],
    },
  );
};

/** @param {string} project @param {Receiver} receiver @param {[string, string]} does action and label */
const receiverButton = (project, { id, url }, [action, label]) =>
  button(action, label, {
    class: "plain",
    "data-project": project,
    "data-receiver": id,
    "data-title": url,
    "aria-label": `${label}: ${url}`,
  });

/** @param {Delivery | null} last */
const lastView = (last) =>
  last === null
    ? detail("Nothing was sent yet.")
    : detail("Last: ", code(last.type), " ", time(last.created_at), ", ", last.status);

/** @param {string} project */
const receiverForm = (project) =>
  formView({
    action: "add-receiver",
    submit: "Add the receiver",
    sending: "Adding…",
    input: { project },
    fields: [
      { name: "format", label: "Format", options: FORMATS },
      {
        name: "url",
        label: "Address",
        hint: "An `https` address. For a chat, the address that Slack (Incoming Webhooks) or Discord (Webhooks) made for the channel.",
        type: "url",
        required: true,
        mono: true,
        placeholder: "https://receiver.example.org/platform",
      },
      h("strong", { "data-key": "events" }, "Events"),
      ...EVENTS.map(([event, label, isUsual]) => ({
        name: `event ${event}`,
        label,
        type: /** @type {"checkbox"} */ ("checkbox"),
        value: isUsual ? "yes" : "",
      })),
    ],
  });

const notification = {
  /** @param {string[]} params @param {import("../frame/app.js").Extent} extent */
  load: async ([id = "", receiver = ""], { pages: shown }) => {
    const [project, found, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getJson(receiverPath(id, `/${receiver}`)),
      getList(receiverPath(id, `/${receiver}/deliveries`), "deliveries", shown),
    ]);
    return { project, receiver: found, deliveries: items, more };
  },

  /** @param {{project: Project, receiver: Receiver}} data */
  title: ({ project, receiver }) => `${receiver.url} · Notifications of ${project.name}`,

  /** @param {{project: Project, receiver: Receiver, deliveries: Delivery[], more: boolean}} data */
  view: ({ project, receiver, deliveries, more }) => [
    trail([
      ["Projects", "#/projects"],
      [project.name, projectLink(project.id)],
      ["Notifications", projectLink(project.id, "/notifications")],
      ["Receiver", null],
    ]),
    h("h1", { "data-key": "heading" }, code(receiver.url)),
    receiver.disabled_reason !== null &&
      callout(
        "bad",
        `Disabled. ${REASONS[receiver.disabled_reason] ?? receiver.disabled_reason} Events that happen meanwhile are not sent.`,
      ),
    receiver.warning !== null && callout("warn", receiver.warning),
    facts([
      ["Format", receiver.format],
      ["Events", receiver.events.join(", ")],
      ["Added", time(receiver.created_at)],
      [
        "Former secret signs until",
        receiver.previous_secret_valid_until && time(receiver.previous_secret_valid_until),
      ],
    ]),
    h(
      "p",
      { class: "actions", "data-key": "actions" },
      receiverButton(project.id, receiver, ["test-receiver", "Send a test"]),
      receiver.format === "standard" &&
        receiverButton(project.id, receiver, ["rotate-receiver", "Rotate the secret"]),
      receiverButton(project.id, receiver, ["remove-receiver", "Remove"]),
    ),
    h(
      "section",
      { "data-key": "deliveries" },
      h("h2", {}, "Deliveries"),
      deliveries.length === 0
        ? empty("Nothing was sent yet.", "A delivery appears here when one of the events happens.")
        : h(
            "ul",
            { class: "rows" },
            deliveries.map((one) => deliveryRow(project.id, receiver.id, one)),
          ),
    ),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older deliveries")),
  ],
};

/** @param {string} project @param {string} receiver @param {Delivery} delivery */
const deliveryRow = (project, receiver, delivery) => {
  const { id, type, status, tries, created_at, next_try_at: next, last_try: last, data } = delivery;
  return listRow(
    id,
    [
      code(type),
      detail(
        time(created_at),
        ` · ${tries} ${tries === 1 ? "try" : "tries"}`,
        next !== null && status === "pending" && [" · next ", time(next)],
      ),
      last !== null && h("span", { class: status === "delivered" ? "quiet" : "reason" }, triedWords(last)),
      h(
        "details",
        { class: "group", "data-key": "data" },
        h("summary", {}, "Content"),
        commandBlock(JSON.stringify(data, null, 2), "the content"),
        last !== null &&
          last.answer !== "" && [h("p", {}, "The receiver's answer:"), answerBlock(last.answer)],
      ),
    ],
    {
      states: [badge(status)],
      actions: [
        status !== "pending" &&
          button("replay-delivery", "Send again", {
            class: "plain",
            "data-project": project,
            "data-receiver": receiver,
            "data-delivery": id,
            "aria-label": `Send again: ${type}`,
          }),
      ],
    },
  );
};

/** @param {string} answer */
const answerBlock = (answer) =>
  h("pre", { class: "text", tabindex: 0, "aria-label": "the receiver's answer" }, answer);

/** @param {Try} outcome */
const triedWords = ({ status, error, took_ms: ms }) =>
  error ?? (status === null ? "No answer." : `Answered ${status} in ${ms} ms.`);

/** @type {Record<string, import("../elements/forms.js").Submit>} */
const forms = {
  "add-receiver": async ({ url = "", format = "", ...typed }, { project = "" }, page) => {
    const events = EVENTS.flatMap(([event]) => (typed[`event ${event}`] === "yes" ? [event] : []));
    if (events.length === 0) throw new Error("Choose at least one event.");
    const { secret } = await post(receiverPath(project), { url, format, events });
    if (secret === null) page.notice("The receiver is added. Send it a test.");
    else
      tell({
        title: "The receiver's signing secret",
        text: "The receiver verifies requests with it. It is not shown again.",
        secret,
      });
    page.refresh();
  },
};

/** @type {Record<string, import("../frame/actions.js").Action>} */
const actions = {
  "test-receiver": async ({ project = "", receiver = "" }, page) => {
    page.notice("A test is sent. This takes up to 15 seconds.");
    const tried = await post(receiverPath(project, `/${receiver}/test`), {}, TEST_TIMEOUT_MS);
    if (!tried.delivered) throw new Error(`The test was not delivered. ${triedWords(tried)}`);
    page.notice(`The test was delivered. ${triedWords(tried)}`);
  },

  "rotate-receiver": async ({ project = "", receiver = "", title = "" }) => {
    const sure = await ask({
      title: `Rotate the secret of ${title}?`,
      text: "For 24 hours requests have two signatures, by the new secret and by the old one. Give the receiver the new secret in that time.",
      confirm: "Rotate",
    });
    if (sure === null) return;
    const { secret } = await post(receiverPath(project, `/${receiver}/rotate`), {});
    tell({ title: "The new signing secret", text: "It is not shown again.", secret });
  },

  "disable-receiver": async ({ project = "", receiver = "" }, page) => {
    await patch(receiverPath(project, `/${receiver}`), { status: "disabled" });
    page.notice("The receiver is disabled. Events that happen meanwhile are not sent.");
  },

  "enable-receiver": async ({ project = "", receiver = "" }, page) => {
    await patch(receiverPath(project, `/${receiver}`), { status: "enabled" });
    page.notice("The receiver is enabled.");
  },

  "remove-receiver": async ({ project = "", receiver = "", title = "" }, page) => {
    const sure = await ask({
      title: `Remove ${title}?`,
      text: "It hears of no more events, and the list of its deliveries is deleted.",
      confirm: "Remove",
    });
    if (sure === null) return;
    await remove(receiverPath(project, `/${receiver}`));
    page.go(projectLink(project, "/notifications"));
  },

  "replay-delivery": async ({ project = "", receiver = "", delivery = "" }, page) => {
    await post(receiverPath(project, `/${receiver}/deliveries/${delivery}/replay`), {});
    page.notice("The delivery is sent again.");
  },
};

/** A receiver has 15 s. */
const TEST_TIMEOUT_MS = 20_000;

export const pages = { notifications, notification };
export { actions, forms };
