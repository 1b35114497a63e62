/** `platform sessions`. */
import { stopWords } from "../../../domain/session/activity-words.ts";
import { ACTIVITIES } from "../../../domain/session/session-activity.ts";
import type { Answer } from "../../contract.ts";
import { command } from "../../command.ts";
import { sendAttachments } from "./attached.ts";
import { readEvents } from "./event-stream.ts";
import { endpoint } from "../../endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../../failure.ts";
import { fieldLines, time, timeOrDash, safeLine, safeJson, safeLines } from "../../terminal.ts";
import { anyId, count, parseWord, sessionId } from "../../words.ts";
import { follow, transcript, watch } from "./conversation.ts";
import { chat } from "./chat.ts";
import { answer, approvePlan, giveCredentials, interrupt, NO_RESTORE, send } from "./messages.ts";
import { sessionPage } from "../page.ts";
import { isQueued, queuedNotes, untilStarted } from "./queued.ts";
import { restoredFields, savedFields, savedWord } from "./saved-words.ts";
import { agents } from "../agents.ts";
import { saveCommands } from "./saves.ts";
import { namedSession } from "./session-argument.ts";
import { checkoutCommands, pushFromHere } from "./checkout.ts";
import { shell } from "./shell.ts";
import { stateLine, stateWord } from "./state-words.ts";
import { stop } from "./stop.ts";
import { sessionsWhy } from "./why.ts";
import { wait } from "./wait.ts";
import { workspaceCommands } from "./workspace.ts";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;

const state = (session: Session): string => safeLine(`${session.id} ${stateWord(session)}`);

const lastTurn = ({ last_turn: turn }: Session): string | null => {
  if (turn === null) return null;
  const why = turn.error === null ? "" : `: ${turn.error.message} (${turn.error.code})`;
  return `${turn.state} at ${time(turn.at)}${why}`;
};

const WAITS: Readonly<Record<NonNullable<Session["waits_for"]>["kind"], string>> = {
  question: "an answer",
  permission: "a permission",
  plan: "the approval of its plan",
  approval: "an approval",
  work_unsaved: "a save of its work",
};

/** The activities between commas, as the API reads them. */
const activities = (text: string, label: string): string =>
  text
    .split(",")
    .map((name) => parseWord(name, ACTIVITIES, label))
    .join(",");

const sessionText = (session: Session): string =>
  fieldLines([
    ["session", session.id],
    ["name", session.name],
    ["state", stateLine(session)],
    ["failure", session.failure && `${session.failure.message} (${session.failure.code})`],
    ["stop reason", session.stop_reason && stopWords(session.stop_reason)],
    ["waits for", session.waits_for && `${WAITS[session.waits_for.kind]}: ${session.waits_for.text}`],
    ["last turn", lastTurn(session)],
    ...savedFields(session),
    ...restoredFields(session),
    ["base", `${session.base_ref}${session.base_commit === null ? "" : ` at ${session.base_commit}`}`],
    [
      "agent",
      session.agent_model === null ? session.agent_name : `${session.agent_name}, ${session.agent_model}`,
    ],
    ["trigger", session.trigger_slug],
    ["started by", session.parent_session_id && `the agent of ${session.parent_session_id}`],
    ["created", time(session.created_at)],
    ["running", session.running_at && time(session.running_at)],
    ["ended", session.stopped_at && time(session.stopped_at)],
    ["prompt", session.initial_prompt],
  ]);

const list = endpoint("GET /v1/projects/:pid/sessions", {
  name: "sessions list",
  about: "List sessions, newest first",
  options: {
    search: {
      value: "WORDS",
      about: "Only those whose name has this, or one message or answer all of these words",
    },
    activity: {
      value: "ACTIVITIES",
      about: `Only those with one of these, between commas: ${ACTIVITIES.join(", ")}`,
      reads: activities,
    },
    waiting: {
      about: "Only those that need you: the same as --activity needs_you",
      sets: "activity",
      to: "needs_you",
    },
    archived: { about: "Only archived ones", to: "true" },
    parent: {
      value: "SESSION",
      about: "Only those that the agent of this session started",
      sets: "parent_session_id",
    },
  },
  rows: "sessions",
  columns: ({ options: { search } }) => ({
    SESSION: "id",
    STATE: stateWord,
    "WAITS FOR": ({ waits_for: waits }) => waits && WAITS[waits.kind],
    SAVED: savedWord,
    CREATED: "created_at",
    "STARTED BY": (session) =>
      session.trigger_slug ?? (session.parent_session_id === null ? "a person" : "an agent"),
    NAME: (session) => session.name ?? session.initial_prompt ?? "",
    ...(search !== undefined && { FOUND: ({ found }) => found?.text ?? "" }),
  }),
  none: "No sessions.",
});

const show = endpoint("GET /v1/projects/:pid/sessions/:sid", {
  name: "sessions show",
  about: "Show a session. In a sandbox, SESSION defaults to its own session",
  takes: ["[SESSION]"],
  shows: sessionText,
});

const create = endpoint("POST /v1/projects/:pid/sessions", {
  name: "sessions create",
  about: "Start a session",
  example: 'sessions create --prompt "Fix the failing test" --watch',
  options: {
    prompt: { value: "TEXT", about: "The first message to the agent", sets: "initial_prompt" },
    "prompt-file": {
      value: "FILE",
      about: "Read it from a file (- for standard input)",
      sets: "initial_prompt",
      from: "file",
    },
    attach: {
      value: "FILE",
      many: true,
      about: "Give the agent a file. May be given up to 10 times",
      sets: null,
    },
    base: {
      value: "REF",
      about: "Branch, tag or commit to start from (the default branch)",
      sets: "base_ref",
    },
    "from-here": {
      about:
        "Start from this clone as it is, with what is not committed: it is pushed to a branch of its own",
      sets: null,
    },
    from: {
      value: "SESSION",
      about: "Start from the saved work of another session, with what it has not pushed",
      sets: null,
    },
    turn: {
      value: "TURN",
      about: "With --from: as it was at the end of this turn, one of `platform sessions turns`",
      sets: null,
    },
    agent: { value: "NAME", about: "One of the project's agents (default)", sets: "agent_name" },
    model: {
      value: "MODEL",
      about: "provider/model, or the name that the agent's runtime has for it (the agent's own)",
      sets: "agent_model",
    },
    effort: { value: "EFFORT", about: "How hard the model thinks, such as low or high (the agent's own)" },
    plan: {
      about: "Plan first: the agent begins to work when you approve its plan. As --mode plan",
      sets: "mode",
      to: "plan",
    },
    mode: { value: "MODE", about: "How the agent begins, in the words of its runtime (the agent's own)" },
    name: { value: "TEXT", about: "Display name" },
    watch: {
      about: "Follow the conversation until interrupted, even if the session first waits for a slot",
      sets: null,
    },
    "no-queue": { about: "Do not wait for a free session", sets: "queue", to: "false", otherwise: "true" },
  },
  notes:
    "The command returns while the session starts. `platform sessions show` shows when it works. If the account has no free session, the session waits in the queue, and the command prints the id of its fire. With --no-queue, the exit code is then 6. A session that an agent starts never waits.",
  sends: async ({ options, input, environment, api, project }) => {
    const { base, "from-here": fromHere, from, turn } = options;
    if ([base, fromHere || undefined, from].filter((one) => one !== undefined).length > 1)
      throw usageFailure("Give one of --base, --from-here and --from.");
    if (turn !== undefined && from === undefined) throw usageFailure("--turn needs --from.");
    const pid = await project();
    const branch = fromHere ? await pushFromHere(api(), { pid, environment }) : undefined;
    const client = { client: api(), input, option: "--attach" };
    const attachments = await sendAttachments(client, { pid }, options.attach);
    return {
      payload: {
        ...(attachments.length > 0 && { attachments }),
        ...(branch !== undefined && { base_ref: branch }),
        ...(from !== undefined && {
          from: {
            session_id: sessionId(from),
            ...(turn !== undefined && { turn_id: anyId(turn, "TURN") }),
          },
        }),
      },
    };
  },
  shows: async (session, call) => {
    const { options, note, json, write, api, project } = call;
    const pid = await project();
    const line = isQueued(session) ? safeLine(`${session.queue_id} Queued`) : state(session);
    const notes = isQueued(session) ? queuedNotes(session) : session.warnings.map(({ message }) => message);
    for (const words of notes) note(words);
    const tellPage = (sid: string) => note(`Page: ${sessionPage(api().page, { pid, sid })}`);
    if (!isQueued(session)) tellPage(session.id);
    if (!options.watch) return line;
    write(`${json ? safeJson(JSON.stringify(session)) : line}\n`);
    const sid = isQueued(session) ? await untilStarted(api(), { pid, queued: session }, note) : session.id;
    if (isQueued(session)) tellPage(sid);
    return await follow(call, { pid, sid });
  },
});

const archive = endpoint("PATCH /v1/projects/:pid/sessions/:sid", {
  name: "sessions archive",
  about: "Put a session away. Its next turn brings it back",
  takes: ["SESSION"],
  options: { undo: { about: "Bring it back", sets: "archived", to: false } },
  always: { archived: true },
  notes:
    "`sessions list --archived` has archived sessions. One that works or waits for a person is not put away.",
  shows: (session, { options: { undo } }) => {
    if (undo) return `${session.id} is not archived`;
    return `${session.id} ${session.archived ? "archived" : `not archived: ${stateWord(session)}`}`;
  },
});

const restart = endpoint("POST /v1/projects/:pid/sessions/:sid/restart", {
  name: "sessions restart",
  about: "Start a session that is asleep or failed again, on its branch and with its saved work",
  takes: ["SESSION"],
  options: { "no-restore": NO_RESTORE },
  always: { restore_saved: true },
  shows: (session, { options, note }) => {
    for (const { message } of session.warnings) note(message);
    if (session.saved !== null && !options["no-restore"])
      note(`Once it runs, \`platform sessions show ${session.id}\` says what came back.`);
    return state(session);
  },
});

const remove = endpoint("DELETE /v1/projects/:pid/sessions/:sid", {
  name: "sessions delete",
  about: "Stop a session and delete its conversation, its log and its saved work; its branch stays",
  asks: "Delete the session with its conversation, its log and its saved work?",
  takes: ["SESSION"],
  notes:
    "The conversation, the log and the saved work cannot be restored. What the agent pushed stays on the branch; change requests, and the tokens and cost of the project stay.",
  done: "deleted",
});

interface LogLine {
  readonly at: string | null;
  readonly source: string;
  readonly line: string;
}

const logs = command({
  name: "sessions logs",
  about: "Print the log of a session's sandboxes: boot, daemon, setup command, agent",
  takes: ["[SESSION]"],
  inProject: true,
  options: { follow: { about: "Print new lines until interrupted" } },
  notes:
    'With --json, the output is {"log": TEXT}. With --json and --follow, each line is an object: {"sandbox_id", "at", "source", "line"}.',
  run: async ({ given, options, json, environment, write, api, project }) => {
    const path = `/projects/${await project()}/sessions/${namedSession(given.SESSION, environment)}/logs`;
    if (!options.follow) {
      const log = await api().text(`${path}?follow=0`);
      return { json: JSON.stringify({ log }), text: safeLines(log).replace(/\n$/, "") };
    }
    const stream = await api().stream(path, { accept: "text/event-stream" });
    for await (const { event, data } of readEvents(stream)) {
      if (event !== "line") continue;
      if (json) write(`${safeJson(data)}\n`);
      else {
        const { at, source, line } = JSON.parse(data) as LogLine;
        write(`${safeLine(`${at ?? "-"} ${source} ${line}`)}\n`);
      }
    }
    throw new Failure(EXIT.tryAgain, "broken_off", {
      message: "The service closed the log stream. Run the command again.",
    });
  },
});

const HIGHEST_PORT = 65_535;

const port = (text: string, label: string): number => {
  const number = count(text, label);
  if (number > HIGHEST_PORT) throw usageFailure(`${label} must be at most ${HIGHEST_PORT}.`);
  return number;
};

const open = endpoint("POST /v1/projects/:pid/sessions/:sid/preview", {
  name: "sessions open",
  about: "Create a browser link to a port in a session's sandbox",
  takes: ["[SESSION]"],
  options: {
    port: { value: "PORT", about: "The port that the program in the sandbox listens on", reads: port },
  },
  notes:
    "The link works once and expires after five minutes. In a sandbox, SESSION defaults to its own session.",
  shows: ({ url, expires_at: until }, { note }) => {
    note(`The link works once, until ${timeOrDash(until)}.`);
    return safeLine(url);
  },
});

export const sessionCommands = [
  list,
  show,
  sessionsWhy,
  create,
  chat,
  send,
  interrupt,
  giveCredentials,
  approvePlan,
  answer,
  stop,
  archive,
  restart,
  agents,
  ...saveCommands,
  remove,
  transcript,
  watch,
  wait,
  logs,
  ...workspaceCommands,
  open,
  shell,
  ...checkoutCommands,
];
