/** Why a session, a trigger, a change request or the account is in its state, and what would move it. */
import { getJson, getJsonOrNull } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import { duration, moment } from "../elements/format.ts";
import { badge, button, callout, code, empty, projectLink, prose, time, trail } from "../elements/parts.ts";
import { projectPath, sessionName } from "../projects/project.ts";
import { statechart } from "./statechart.ts";
import type { Machine, MachineDefinition } from "../wire.d.ts";

interface StatePage {
  /** Of the breadcrumbs. */
  steps: [string, string | null][];
  name: string;
  machines: { label: string; machine: Machine }[];
  definitions: Map<string, MachineDefinition>;
}

/** How many transitions the page begins with, and how many each further page adds. */
const SHOWN = 25;

/** Reads a machine with as much of its history as is shown. @returns null: it does not exist yet */
const machineAt = (path: string, pages: number): Promise<Machine | null> =>
  getJsonOrNull(`${path}/machine?limit=${Math.min(200, SHOWN * pages)}`);

/** They do not change while the page is open. */
let asked: Promise<{ readonly machines: readonly MachineDefinition[] }> | null = null;
const definitions = async () => {
  asked ??= getJson("/v1/machines");
  try {
    const { machines } = await asked;
    return new Map(machines.map((machine) => [machine.name, machine]));
  } catch (error) {
    asked = null;
    throw error;
  }
};

const pageOf = async (
  place: { steps: [string, string | null][]; name: string },
  parts: [string, Promise<Machine | null>][],
): Promise<StatePage> => {
  const [known_, ...machines] = await Promise.all([definitions(), ...parts.map(([, machine]) => machine)]);
  return {
    ...place,
    definitions: known_ as Map<string, MachineDefinition>,
    machines: machines.flatMap((machine, index) =>
      machine === null ? [] : [{ label: parts[index]?.[0] ?? "", machine: machine as Machine }],
    ),
  };
};

/** What the pages share. The project's events tell of most changes; the rest is polled. */
const page = {
  isPolled: true,
  title: ({ name }: StatePage) => `State of ${name}`,
  view: (data: StatePage) => [
    trail([...data.steps, ["State", null]]),
    h("header", { class: "head", "data-key": "head" }, h("h1", {}, "Why ", data.name, " is in its state")),
    ...data.machines.map((part) => machineView(part, data.definitions)),
    data.machines.some(({ machine }) => machine.next_cursor !== null) &&
      h("p", { class: "actions", "data-key": "more" }, button("more", "Show more of the history")),
  ],
};

const sessionState = {
  ...page,
  load: async ([projectId = "", id = ""]: string[], { pages }: { pages: number }) => {
    const path = `${projectPath(projectId)}/sessions/${encodeURIComponent(id)}`;
    const [project, session] = await Promise.all([getJson(projectPath(projectId)), getJson(path)]);
    const name = sessionName(session);
    return pageOf(
      {
        name,
        steps: [
          ["Projects", "#/projects"],
          [project.name, projectLink(project.id)],
          [name, projectLink(project.id, `/sessions/${session.id}`)],
        ],
      },
      [
        ["Session", machineAt(path, pages)],
        ["Sandbox", machineAt(`${path}/sandbox`, pages)],
        ["Conversation", machineAt(`${path}/conversation`, pages)],
      ],
    );
  },
};

const triggerState = {
  ...page,
  load: async ([projectId = "", encoded = ""]: string[], { pages }: { pages: number }) => {
    const project = await getJson(projectPath(projectId));
    const slug = decoded(encoded);
    return pageOf(
      {
        name: slug,
        steps: [
          ["Projects", "#/projects"],
          [project.name, projectLink(project.id)],
          ["Triggers", projectLink(project.id, "/triggers")],
          [slug, null],
        ],
      },
      [
        [
          "Trigger",
          getJson(
            `${projectPath(projectId)}/triggers/${encodeURIComponent(slug)}/machine?limit=${Math.min(200, SHOWN * pages)}`,
          ),
        ],
      ],
    );
  },
};

const changeRequestState = {
  ...page,
  load: async ([projectId = "", number = ""]: string[], { pages }: { pages: number }) => {
    const project = await getJson(projectPath(projectId));
    return pageOf(
      {
        name: `change request #${number}`,
        steps: [
          ["Projects", "#/projects"],
          [project.name, projectLink(project.id)],
          [`#${number}`, projectLink(project.id, `/change-requests/${number}`)],
        ],
      },
      [["Change request", machineAt(`${projectPath(projectId)}/change-requests/${number}`, pages)]],
    );
  },
};

const accountState = {
  ...page,
  load: (_params: string[], { pages }: { pages: number }) =>
    pageOf({ name: "the account", steps: [["Account", "#/account"]] }, [
      ["Account", machineAt("/v1/account", pages)],
    ]),
};

export const pages = {
  session: sessionState,
  trigger: triggerState,
  changeRequest: changeRequestState,
  account: accountState,
};

/** @param part of an address */
const decoded = (part: string) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

const machineView = (
  { label, machine }: { label: string; machine: Machine },
  known: Map<string, MachineDefinition>,
) => {
  const definition = known.get(machine.machine ?? "");
  return h(
    "section",
    { class: "machine", "data-key": label },
    h(
      "h2",
      {},
      label,
      " ",
      machine.state !== null && stateBadge(machine.state),
      machine.since !== null && h("span", { class: "quiet" }, " since ", time(machine.since)),
    ),
    h(
      "ul",
      { class: "why" },
      machine.why.map((sentence) => h("li", { class: "text" }, prose(sentence))),
    ),
    h("div", { class: "machine-words", "data-key": "words" }, nextView(machine), pendingView(machine)),
    machine.machine !== null && historyView(machine),
    machine.machine !== null &&
      h(
        "details",
        { class: "group", "data-key": "names" },
        h("summary", {}, "The state machine, and its names"),
        definition !== undefined &&
          h(
            "div",
            { class: "machine-chart", "data-key": "chart" },
            statechart(definition, { state: machine.state, taken: machine.transitions }),
          ),
      ),
  );
};

/** @param state its name in the API */
const stateBadge = (state: string) => badge(state.replaceAll("_", " "));

/** A name in the API, which is shown on request (state.css). */
const named = (name: string) => h("span", { class: "quiet code-name" }, code(name));

const nextView = ({ next, state }: Machine) =>
  h(
    "section",
    {},
    h("h3", {}, "What can happen next"),
    next.length === 0
      ? h("p", { class: "quiet" }, "Nothing changes this by itself.")
      : h(
          "ul",
          { class: "next" },
          next.map(({ event, to, text, at }) =>
            h(
              "li",
              { "data-key": `${event} ${to ?? ""}` },
              h("p", {}, prose(text)),
              h(
                "p",
                { class: "quiet" },
                to !== null && to !== state && ["It is then ", stateBadge(to), " "],
                at !== null && [time(at), ` (${moment(at)}) `],
                named(event),
              ),
            ),
          ),
        ),
  );

const pendingView = ({ pending }: Machine) =>
  pending.length > 0 &&
  h(
    "section",
    {},
    h("h3", {}, "Under way"),
    h(
      "ul",
      { class: "next" },
      pending.map(({ command, text, since, attempts, last_error }, index) =>
        h(
          "li",
          { "data-key": `${command} ${index}` },
          h(
            "p",
            {},
            sentence(text),
            " ",
            h("span", { class: "quiet" }, "Since ", time(since), ". "),
            named(command),
          ),
          attempts > 0 &&
            callout(
              "warn",
              `It failed ${attempts === 1 ? "once" : `${attempts} times`}, and is tried again.`,
              last_error !== null && h("p", { class: "text" }, last_error),
            ),
        ),
      ),
    ),
  );

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

const historyView = ({ transitions }: Machine) =>
  transitions.length === 0
    ? empty("Nothing has happened yet.", "The history begins with the next change.")
    : h(
        "table",
        { class: "history" },
        h("caption", {}, "History, the newest first"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["When", "What happened", "State", "After"].map((name) => h("th", { scope: "col" }, name)),
            h("th", { scope: "col", class: "code-name" }, "Commands"),
          ),
        ),
        h("tbody", {}, transitions.map(transitionRow)),
      );

const transitionRow = ({
  number,
  at,
  event,
  text,
  from,
  to,
  detail,
  commands,
  duration_ms,
}: Machine["transitions"][number]) =>
  h(
    "tr",
    { "data-key": String(number) },
    h("td", {}, time(at)),
    h(
      "td",
      {},
      h("p", {}, prose(text), " ", named(event)),
      detail !== null && h("p", { class: "text detail" }, detail),
    ),
    h("td", {}, from !== null && from !== to && [stateBadge(from), " → "], stateBadge(to)),
    h("td", { class: "quiet" }, duration_ms === null ? "" : duration(duration_ms)),
    h("td", { class: "quiet code-name" }, commands.join(", ")),
  );
