/** `platform sessions send`, `interrupt`, `give-credentials`, `answer` and `approve-plan`. */
import { choices, endpoint } from "../../endpoint/endpoint.ts";
import { command } from "../../command.ts";
import { EXIT, Failure, usageFailure } from "../../failure.ts";
import { safeLine } from "../../terminal.ts";
import { sessionId } from "../../words.ts";
import { sendAttachments } from "./attached.ts";
import { parseJson } from "../../../ground/record.ts";

/** An option of commands that restart a session. */
export const NO_RESTORE = {
  about: "Do not bring the session's saved work back",
  sets: "restore_saved",
  to: false,
} as const;

export const send = endpoint("POST /v1/projects/:pid/sessions/:sid/messages", {
  name: "sessions send",
  about: "Send a message to the agent of a session",
  takes: ["SESSION", "[TEXT]"],
  options: {
    file: {
      value: "FILE",
      about: "Read the message from a file (- for standard input)",
      sets: "text",
      from: "file",
    },
    attach: { value: "FILE", many: true, about: "Attach a file. May be given up to 10 times", sets: null },
    now: {
      about: "End the agent's turn, and send the message before those that wait",
      sets: "delivery",
      to: "interrupt",
    },
    model: { value: "PROVIDER/MODEL", about: "From this message on, use this model" },
    agent: { value: "NAME", about: "From this message on, use this agent" },
    effort: {
      value: "EFFORT",
      about: "From this message on, let the model think so hard, such as low or high",
    },
    "no-restore": NO_RESTORE,
    id: { value: "UUID", about: "The message's id. A repeated call with the same id sends it once" },
  },
  always: { restore_saved: true, delivery: "queue" },
  notes:
    "The message waits until the agent has ended its turn. A session that has ended is restarted, with its saved work. If 20 messages wait, or the account has no free session, the exit code is 6.",
  sends: async ({ given: { SESSION, TEXT }, options: { file, attach, id }, input, api, project }) => {
    if (TEXT === undefined && file === undefined && attach.length === 0)
      throw usageFailure("Give TEXT, --file or --attach.");
    if (id !== undefined && attach.length > 0)
      throw usageFailure("Give --id or --attach, not both: a repeated call would attach other files.");
    const params = { pid: await project(), sid: sessionId(SESSION) };
    const attachments = await sendAttachments({ client: api(), input, option: "--attach" }, params, attach);
    return { payload: { id: crypto.randomUUID(), ...(attachments.length > 0 && { attachments }) } };
  },
  shows: ({ message: { id, status } }) => safeLine(`${id} ${status}`),
});

export const interrupt = endpoint("POST /v1/projects/:pid/sessions/:sid/interrupt", {
  name: "sessions interrupt",
  about: "End the agent's turn; what it did so far stays",
  takes: ["SESSION"],
  notes: "Messages that wait are held. The next message, or `Resume` on the session's page, lets them go on.",
  shows: ({ interrupted }) => (interrupted ? "The agent's turn ends." : "The agent does not work."),
});

export const giveCredentials = endpoint("POST /v1/projects/:pid/sessions/:sid/own-credentials/give-back", {
  name: "sessions give-credentials",
  about: "Give your own credentials back to your session that another person steered",
  takes: ["SESSION"],
  notes:
    "The other person's open terminals, and programs that she started in the sandbox, stay. A restart ends them.",
  shows: () => "Your own credentials work in this session again.",
});

const ANSWER = "POST /v1/projects/:pid/sessions/:sid/requests/:id/answer";

const isAnswers = (value: unknown): value is readonly (readonly string[])[] =>
  Array.isArray(value) &&
  value.every((one) => Array.isArray(one) && one.every((text) => typeof text === "string"));

/** The answers of a request with several questions, as JSON. */
const readAnswers = (text: string): readonly (readonly string[])[] => {
  const value = parseJson(text);
  if (isAnswers(value)) return value;
  throw usageFailure('--answers must be a list of lists in JSON, such as [["Blue"], ["Large", "Small"]].');
};

export const answer = endpoint(ANSWER, {
  name: "sessions answer",
  about: "Answer a request of the agent: a permission or a question",
  takes: ["SESSION", "REQUEST"],
  options: {
    choice: { value: "CHOICE", about: `For a permission: ${choices(ANSWER, "choice").join(", ")}` },
    message: { value: "TEXT", about: "Tell the agent why, with --choice", sets: null },
    text: {
      value: "TEXT",
      about: "The answer to one question: an option or your own words",
      sets: "answers",
      reads: (text: string) => [[text]],
    },
    answers: {
      value: "JSON",
      about: "The answers to several questions, a list for each",
      reads: readAnswers,
    },
  },
  notes: "`platform sessions watch` shows requests with their ids. The first answer counts.",
  sends: ({ options: { choice, message, text, answers } }) => {
    if ([choice, text, answers].filter((one) => one !== undefined).length !== 1)
      throw usageFailure("Give one of --choice, --text and --answers.");
    return choice === undefined || message === undefined ? {} : { payload: { message } };
  },
  shows: ({ request }) => `${request.id} answered`,
});

export const approvePlan = command({
  name: "sessions approve-plan",
  about: "Approve the plan of a session's agent, which then carries it out",
  takes: ["SESSION"],
  inProject: true,
  options: {
    mode: { value: "MODE", about: "How the agent goes on (default: the usual way of its runtime)" },
  },
  notes:
    "`platform sessions watch` shows the plan. For another plan, send a message: `platform sessions send`.",
  run: async ({ given, options, api, project }) => {
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const client = api();
    const { value: conversation } = await client.call("GET /v1/projects/:pid/sessions/:sid/conversation", {
      params,
      query: { limit: 1 },
    });
    const plan = conversation.requests.find(({ request }) => request?.kind === "plan");
    if (plan === undefined)
      throw new Failure(EXIT.conflict, "no_plan", { message: "No plan of this session waits for approval." });
    const { mode } = options;
    const { text } = await client.call("POST /v1/projects/:pid/sessions/:sid/requests/:id/answer", {
      params: { ...params, id: plan.id },
      payload: { approve: true, ...(mode !== undefined && { mode }) },
    });
    return { json: text, text: "The plan is approved." };
  },
});
