/** A dialog that shows a trigger's prompt for an imagined fire, without starting anything. */
import { ApiError, getJson, post } from "./api.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { counted, moment } from "./format.js";
import { prose } from "./parts.js";
import { projectPath } from "./project.js";
import { isJson, prettyJson } from "./text.js";

/** @typedef {{prompt: string, variables: unknown, outcome?: "fires" | "pong" | "filtered" | "deletion" | "own_push" | "own_request" | "own_comment"}} Preview */

/**
 * @typedef {object} Imagined the trigger, and what the form begins with
 * @property {string} projectId
 * @property {string} slug
 * @property {string} title
 * @property {string[]} kinds the first is chosen
 * @property {string[]} upcoming instants a cron trigger is due at
 * @property {{body: string, headers: Record<string, string>}} request of a webhook
 */

/** The headers that templates (spec.md 6) and filters use, by their names in requests. */
const HEADERS = [
  ["x-github-event", "X-GitHub-Event"],
  ["content-type", "Content-Type"],
  ["user-agent", "User-Agent"],
  ["x-forwarded-for", "X-Forwarded-For"],
];

/** The content type of forms. A form's body is text, with JSON in its field `payload`. */
const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Outcomes of a delivery that does not fire. */
const OUTCOMES = new Map([
  ["pong", "This is a ping. The service answers it and does not start a session."],
  ["filtered", "The delivery does not match the trigger's filter. It would not start a session."],
  ["deletion", "The delivery tells of a deleted branch or tag. It would not start a session."],
  ["own_push", "The delivery is a push to a session's own branch. It would not start a session."],
  ["own_request", "The delivery is about the service's own pull request. It would not start a session."],
  ["own_comment", "The delivery is the service's own comment. It would not start a session."],
]);

/**
 * A stored request as the start of an imagined one, with its body as JSON. A body that is not JSON is read as the
 * receiver reads it.
 *
 * @param {NonNullable<import("./wire.d.ts").FireDetail["request"]>} request
 * @returns {Imagined["request"]}
 */
export const imaginedRequest = ({ headers, body }) => {
  const isForm = FORM.test(headers?.content_type ?? "") && !isJson(body);
  const raw = JSON.stringify(body === "" ? {} : { raw: body }, null, 2);
  return {
    body: isForm ? body : (prettyJson(body) ?? (isJson(body) ? body : raw)),
    headers: given([
      ["content-type", headers?.content_type ?? ""],
      ["user-agent", headers?.user_agent ?? ""],
      ["x-forwarded-for", headers?.forwarded_for ?? ""],
    ]),
  };
};

/** @param {Imagined} imagined */
export const openPreview = (imagined) => {
  const refusal = h("p", { class: "refusal text", role: "alert" });
  const outcome = h("p", { class: "quiet", role: "status" });
  const result = h("div", { class: "result" });
  const form = /** @type {HTMLFormElement} */ (
    h(
      "form",
      {},
      h("h2", { id: "dialog-title" }, `Preview "${imagined.title}"`),
      h("p", { class: "quiet" }, "Shows the prompt that the trigger would render. No session starts."),
      kindChoice(imagined.kinds),
      imagined.kinds.map((kind) => fieldsOf(kind, imagined)),
      refusal,
      h(
        "p",
        { class: "actions" },
        h("button", { type: "button", class: "decline" }, "Close"),
        h("button", { type: "submit", class: "primary" }, "Preview"),
      ),
      outcome,
      result,
    )
  );
  const showFields = () => {
    const kind = String(new FormData(form).get("kind"));
    for (const group of form.querySelectorAll("fieldset")) group.hidden = group.dataset["kind"] !== kind;
  };
  form.addEventListener("change", showFields);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void render();
  });
  let asked = 0;
  const render = async () => {
    asked += 1;
    const turn = asked;
    const answer = await previewOf(imagined, new FormData(form));
    // A later press has made this answer obsolete.
    if (turn !== asked) return;
    const isRefused = typeof answer === "string";
    refusal.replaceChildren(...(isRefused ? [h("span", {}, prose(answer))] : []));
    outcome.textContent = isRefused
      ? ""
      : (OUTCOMES.get(answer.outcome ?? "") ??
        `${counted([...answer.prompt].length, "character")}. No session was started.`);
    result.replaceChildren(...(isRefused ? [] : rendered(answer)));
    (isRefused ? refusal : result).scrollIntoView({ block: "nearest" });
  };
  showFields();
  openDialog(form, { wide: true });
  if (imagined.kinds.includes("webhook")) void offerPast(imagined, form);
};

/** How many past deliveries are offered. All of them are in the runs. */
const PAST_SHOWN = 20;
/** A longer body makes the form slow. */
const BODY_MAX = 256 * 1024;

/**
 * Offers the trigger's stored deliveries as bodies. Without any, the reader writes one.
 *
 * @param {Imagined} imagined @param {HTMLFormElement} form
 */
const offerPast = async ({ projectId, slug }, form) => {
  const place = form.querySelector("[data-past]");
  const query = new URLSearchParams({ slug, limit: String(PAST_SHOWN) });
  /** @type {import("./wire.d.ts").Fire[]} */
  const fires = await getJson(`${projectPath(projectId)}/fires?${query}`).then(
    (answer) => answer.fires.filter((/** @type {{kind: string}} */ { kind }) => kind === "webhook"),
    () => [],
  );
  if (fires.length === 0 || place === null) return;
  const said = h("p", { class: "quiet", role: "status" });
  const choice = h(
    "select",
    { id: "preview-past" },
    h("option", { value: "" }, "none, as written below"),
    fires.map((fire) =>
      h(
        "option",
        { value: fire.id },
        [moment(fire.received_at), fire.status, fire.delivery_id].filter(Boolean).join(" · "),
      ),
    ),
  );
  let asked = "";
  choice.addEventListener("change", async () => {
    asked = /** @type {HTMLSelectElement} */ (choice).value;
    if (asked === "") return;
    const turn = asked;
    const found = await getJson(`${projectPath(projectId)}/fires/${turn}`).catch(() => null);
    if (turn === asked) said.textContent = takeRequest(form, found?.request ?? null);
  });
  place.replaceChildren(
    h("div", { class: "field" }, h("label", { for: "preview-past" }, "Past delivery"), choice, said),
  );
};

/**
 * Puts a stored request into the form.
 *
 * @param {HTMLFormElement} form @param {import("./wire.d.ts").FireDetail["request"]} request
 * @returns {string} what the reader has to know
 */
const takeRequest = (form, request) => {
  if (request === null)
    return "This request is not stored. It was too large, or it was removed to make room for newer requests. Paste its body below.";
  if (request.encoding !== "utf8" || request.body.length > BODY_MAX)
    return "This body is too large for the form, or it is not text.";
  const { body, headers } = imaginedRequest(request);
  for (const [name, value] of [["body", body], ...Object.entries(headers)]) {
    const input = form.elements.namedItem(name ?? "");
    if (input instanceof HTMLTextAreaElement || input instanceof HTMLInputElement) input.value = value ?? "";
  }
  return "The body and three headers are stored, but not the event's name. If the filter needs it, enter it under Headers.";
};

/**
 * @param {Imagined} imagined @param {FormData} entered @returns {Promise<Preview | string>} the preview, or the error
 * as text
 */
const previewOf = async ({ projectId, slug }, entered) => {
  try {
    return await post(
      `${projectPath(projectId)}/triggers/${encodeURIComponent(slug)}/preview`,
      requestOf(entered),
    );
  } catch (error) {
    if (error instanceof SyntaxError) {
      return `The body is not valid JSON: ${error.message}. (If a delivery has this body, the prompt can use it as body.raw.)`;
    }
    return error instanceof ApiError ? error.message : String(error);
  }
};

/** @param {FormData} entered @returns {Record<string, unknown>} throws a SyntaxError if the body is not JSON */
const requestOf = (entered) => {
  const text = (/** @type {string} */ name) => String(entered.get(name) ?? "").trim();
  const kind = text("kind");
  if (kind === "cron") return { kind, ...(text("at") === "" ? {} : { at: text("at") }) };
  if (kind === "manual")
    return {
      kind,
      ...given([
        ["text", text("text")],
        ["source", text("source")],
      ]),
    };
  const headers = given(HEADERS.map(([name = ""]) => [name, text(name)]));
  const isForm = FORM.test(text("content-type")) && !isJson(text("body"));
  return {
    kind,
    ...(text("body") === "" ? {} : { body: isForm ? text("body") : JSON.parse(text("body")) }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  };
};

/** @param {[string, string][]} entries */
const given = (entries) => Object.fromEntries(entries.filter(([, value]) => value !== ""));

/** @param {Preview} preview */
const rendered = ({ prompt, variables }) => [
  h("h3", {}, "Prompt"),
  prompt === ""
    ? h("p", { class: "quiet" }, "The prompt is empty.")
    : h("pre", { class: "text", tabindex: 0, "aria-label": "Prompt" }, prompt),
  h(
    "details",
    {},
    h("summary", {}, "Variables"),
    h(
      "pre",
      { class: "text", tabindex: 0 },
      prettyJson(JSON.stringify(variables)) ?? JSON.stringify(variables),
    ),
  ),
];

/** @param {string[]} kinds */
const kindChoice = (kinds) =>
  h(
    "div",
    { class: "choices", role: "radiogroup", "aria-label": "Kind of run" },
    kinds.map((kind, index) =>
      h("label", {}, h("input", { type: "radio", name: "kind", value: kind, checked: index === 0 }), kind),
    ),
  );

/** @param {string} kind @param {Imagined} imagined */
const fieldsOf = (kind, imagined) => {
  if (kind === "webhook") return webhookFields(imagined.request);
  if (kind === "cron") return cronFields(imagined.upcoming);
  return h(
    "fieldset",
    { "data-kind": kind },
    field("text", "Message (message.text)", h("textarea", { rows: 3 })),
    field("source", "Source (message.source)", h("input", { type: "text" })),
  );
};

/** @param {Imagined["request"]} request */
const webhookFields = ({ body, headers }) =>
  h(
    "fieldset",
    { "data-kind": "webhook" },
    h("div", { "data-past": "" }),
    field("body", "Body (JSON)", h("textarea", { rows: 8, class: "mono", spellcheck: "false" }, body)),
    h(
      "details",
      { open: Object.keys(headers).length > 0 },
      h("summary", {}, "Headers"),
      HEADERS.map(([name = "", label = ""]) =>
        field(name, label, h("input", { type: "text", value: headers[name] ?? "", autocomplete: "off" })),
      ),
    ),
  );

/** @param {string[]} upcoming */
const cronFields = (upcoming) =>
  h(
    "fieldset",
    { "data-kind": "cron" },
    field(
      "at",
      "Due",
      h(
        "select",
        {},
        upcoming.map((at) => h("option", { value: at }, moment(at))),
        h("option", { value: "" }, "now"),
      ),
    ),
  );

/** @param {string} name @param {string} label @param {HTMLElement} input */
const field = (name, label, input) => {
  input.id = `preview-${name}`;
  input.setAttribute("name", name);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
};
