/** The choice of model and agent for a message. The service is asked for them when a reader opens the choice first. */
import { ApiError, getJson } from "./api.js";
import { h, morph } from "./dom.js";

/** @typedef {import("./wire.d.ts").ModelListing} ModelListing */
/** @typedef {{model: string, agent: string}} Chosen empty: as before */

const AS_BEFORE = "As before";
/** Before the first message of the agent there is no "before". */
const AT_FIRST = "The session's";

/** @typedef {ReturnType<typeof makeChoices>} Choices */

const makeButton = () =>
  h("button", {
    type: "button",
    class: "quiet-button",
    "aria-expanded": "false",
    "aria-controls": "message-choices",
  });

/** @param {string} path of the session in the API @param {() => void} changed called after each choice */
export const makeChoices = (path, changed) => {
  /** @type {Chosen} */
  const chosen = { model: "", agent: "" };
  /** @type {ModelListing | null} */
  let listing = null;
  let problem = "";
  let otherwise = AS_BEFORE;
  let used = "";
  let isLoading = false;
  const button = makeButton();
  const element = h("div", { id: "message-choices", class: "choices-of-message", hidden: true });

  const draw = () => {
    button.replaceChildren(labelOf(chosen, listing, used === "" ? otherwise.toLowerCase() : used));
    morph(element, [
      pickOne({ name: "model", label: "Model", otherwise, options: modelOptions(listing) }, chosen.model),
      pickOne(
        {
          name: "agent",
          label: "Agent",
          otherwise,
          options: (listing?.agents ?? []).map(({ name, description }) => [name, name, description]),
        },
        chosen.agent,
      ),
      h(
        "p",
        { class: problem === "" ? "quiet" : "refusal", role: "status" },
        isLoading ? "Loading…" : problem,
      ),
    ]);
  };

  const load = async () => {
    isLoading = true;
    problem = "";
    draw();
    try {
      listing = await getJson(`${path}/models`);
    } catch (error) {
      problem = problemOf(error);
    }
    isLoading = false;
    draw();
  };

  button.addEventListener("click", () => {
    element.hidden = !element.hidden;
    button.setAttribute("aria-expanded", String(!element.hidden));
    if (!element.hidden && listing === null && !isLoading) void load();
  });
  element.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLSelectElement)) return;
    Object.assign(chosen, { [target.name]: target.value });
    draw();
    changed();
  });
  draw();
  return {
    button,
    element,
    chosen,
    /** @param {{isFirst: boolean, model: string | null}} now isFirst: the agent has said nothing yet. model: its last one */
    see: ({ isFirst, model }) => {
      if (isFirst === (otherwise === AT_FIRST) && used === (model ?? "")) return;
      otherwise = isFirst ? AT_FIRST : AS_BEFORE;
      used = model ?? "";
      draw();
    },
    /** @param {Partial<Chosen>} next what it does not name is as before */
    choose: (next) => {
      Object.assign(chosen, { model: "", agent: "" }, next);
      draw();
    },
  };
};

/** @param {ModelListing | null} listing @returns {[string, string][]} value and label of each model */
const modelOptions = (listing) =>
  (listing?.models ?? []).map(({ id, name }) => [
    id,
    id === listing?.default_model ? `${name} (default)` : name,
  ]);

/**
 * @param {{name: string, label: string, otherwise: string, options: [string, string, (string | null)?][]}} choice options: value, label, explanation
 * @param {string} chosen a kept choice is offered before the list is loaded, too
 * @returns {HTMLElement}
 */
const pickOne = ({ name, label, otherwise, options }, chosen) => {
  const isKnown = chosen === "" || options.some(([value]) => value === chosen);
  /** @type {[string, string, (string | null)?][]} */
  const all = [["", otherwise], ...options];
  if (!isKnown) all.push([chosen, chosen]);
  return h(
    "label",
    { class: "pick", "data-key": name },
    label,
    h(
      "select",
      { name },
      all.map(([value, shown, explanation]) =>
        h(
          "option",
          { value, title: explanation, selected: value === chosen, "data-key": `option ${value}` },
          shown,
        ),
      ),
    ),
  );
};

/** @param {Chosen} chosen @param {ModelListing | null} listing @param {string} otherwise the model, if none is chosen */
const labelOf = ({ model, agent }, listing, otherwise) => {
  const name = listing?.models.find(({ id }) => id === model)?.name ?? model;
  const named = [name, agent].filter((one) => one !== "");
  return h(
    "span",
    {},
    "Model",
    named.length === 0
      ? h(
          "span",
          { class: "as-before" },
          `: ${listing?.models.find(({ id }) => id === otherwise)?.name ?? otherwise}`,
        )
      : `: ${named.join(" · ")}`,
  );
};

/** @param {unknown} error */
const problemOf = (error) => {
  if (error instanceof ApiError && error.code === "session_not_running") {
    return "The models are known while the session runs. Send a message first.";
  }
  return `${error instanceof Error ? error.message : String(error)} Close and open this choice to try again.`;
};
