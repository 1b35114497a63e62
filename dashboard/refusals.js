/** Webhooks that a project's receiver refused, with the reasons that the sender does not get. */
import { getJson, getList } from "./api.js";
import { h } from "./dom.js";
import { button, callout, code, empty, projectLink, time } from "./parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("./wire.d.ts").WebhookRefusal} WebhookRefusal */
/** @typedef {{project: import("./wire.d.ts").Project, refusals: WebhookRefusal[], more: boolean}} Refusals */

/** Texts for reason codes. Other codes are shown as they are. */
const REASONS = new Map([
  ["invalid_webhook_address", "No trigger has this webhook address."],
  ["unknown_trigger", "platform.toml has no trigger with this slug."],
  ["trigger_in_error", "The trigger's entry in platform.toml, or its filter, has an error."],
  ["trigger_disabled", "The trigger is disabled."],
  ["not_a_webhook_trigger", "The trigger is not a webhook trigger."],
  ["triggers_paused", "The project's triggers are paused."],
  ["project_archived", "The project is archived."],
  ["secret_not_configured", "The trigger's secret has no value."],
  ["signature_missing", "The request has no signature."],
  ["signature_malformed", "The signature must be sha256= followed by 64 hexadecimal digits."],
  ["signature_mismatched", "The signature does not match. Check that the sender uses the trigger's secret."],
  ["body_too_large", "The body is larger than 25 MiB."],
  ["body_timeout", "The body did not arrive in time."],
  ["malformed_request", "The request ended before its body was complete."],
  ["queue_full", "The account's queue was full."],
  ["busy", "The service was busy."],
  ["database_unavailable", "The database could not be reached."],
]);

const refusals = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<Refusals>} */
  load: async ([id = ""], { pages }) => {
    const [project, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getList(`${projectPath(id)}/webhook-refusals`, "webhook_refusals", pages),
    ]);
    return { project, refusals: items, more };
  },

  /** @param {Refusals} data */
  title: ({ project }) => `Refused deliveries of ${project.name}`,

  /** @param {Refusals} data */
  view: ({ project, refusals: list, more }) => [
    ...projectHead(project, "/webhook-refusals"),
    project.triggers_paused &&
      callout("warn", "All triggers of this project are paused. Webhook deliveries get a 404 response."),
    list.length === 0
      ? empty(
          "No refused deliveries.",
          "This page shows up to 500 refused deliveries of the last 7 days. ",
          h("a", { href: projectLink(project.id, "/triggers") }, "Show the triggers"),
        )
      : h("ul", { class: "rows", "data-key": "refusals" }, list.map(row)),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older deliveries")),
  ],
};

/** @param {WebhookRefusal} refusal */
const row = (refusal) =>
  h(
    "li",
    { class: "row", "data-key": refusal.id },
    h(
      "span",
      { class: "row-main" },
      h("span", { class: "named" }, code(refusal.slug)),
      h("span", { class: "reason" }, REASONS.get(refusal.reason) ?? refusal.reason),
      h(
        "span",
        { class: "quiet parts" },
        detailsOf(refusal).map((part) => h("span", {}, part)),
      ),
    ),
    code(String(refusal.status)),
    h("span", { class: "row-side" }, time(refusal.at)),
  );

/** @param {WebhookRefusal} refusal */
const detailsOf = ({ event, delivery_id: delivery, address, forwarded_for: forwarded, ...sizes }) => {
  const bytes = sizes.body_bytes ?? sizes.declared_bytes;
  return [
    event && h("span", {}, "event ", code(event)),
    delivery && h("span", {}, "delivery ", code(delivery)),
    bytes !== null && `${bytes} bytes`,
    h("span", {}, "from ", code(forwarded ?? address)),
  ].filter(Boolean);
};

export const pages = { refusals };
