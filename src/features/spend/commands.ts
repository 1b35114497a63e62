/** `platform limits`: limits of what models may cost or use, one command for each kind of subject. */
import type { Answer, Request } from "../../cli/contract.ts";
import type { Client } from "../../cli/client.ts";
import { type Columns, recordTable } from "../../cli/endpoint/columns.ts";
import { command } from "../../cli/command.ts";
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../../cli/failure.ts";
import { fieldLines, table, safeLine } from "../../cli/terminal.ts";
import { anyId, projectId, segment, sessionId } from "../../cli/words.ts";
import { quantity } from "../../domain/counted.ts";

type Limit = Answer<"GET /v1/spend">["limits"][number];
type Sums = Answer<"GET /v1/spend">["spent"];
type Amount = NonNullable<Request<"PUT /v1/projects/:pid/sessions/:sid/spend-limit">["payload"]>;

const dollars = (usd: number): string => `$${usd.toFixed(usd > 0 && usd < 1 ? 4 : 2)}`;

const spentWords = ({ usd, tokens }: Sums): string => `${dollars(usd)}, ${quantity(tokens, "token")}`;

const amountText = ({ unit, amount }: Pick<Limit, "unit" | "amount">): string =>
  unit === "usd" ? dollars(amount) : quantity(amount, "token");

const options = {
  usd: { value: "DOLLARS", about: "The limit in dollars, such as 5 or 0.50" },
  tokens: { value: "TOKENS", about: "The limit in tokens of prompts and answers" },
  remove: { about: "Remove the limit" },
} as const;

interface Given {
  readonly usd: string | undefined;
  readonly tokens: string | undefined;
  readonly remove: boolean;
}

/** The amount of the options. Null removes the limit. */
const amountIn = ({ usd, tokens, remove }: Given): Amount | null => {
  if ([usd !== undefined, tokens !== undefined, remove].filter(Boolean).length !== 1)
    throw usageFailure("Give one of --usd, --tokens and --remove.");
  if (remove) return null;
  if (usd !== undefined && !/^\d{1,7}(?:\.\d{1,6})?$/.test(usd))
    throw usageFailure("--usd must be a number such as 5 or 0.50.");
  if (tokens !== undefined && !/^[1-9]\d{0,12}$/.test(tokens))
    throw usageFailure("--tokens must be a number of 1 or more.");
  return usd === undefined ? { tokens: Number(tokens) } : { usd: Number(usd) };
};

const PERIODS = {
  account: "month",
  project: "month",
  person: "month",
  each_session: "-",
  trigger: "day",
  session: "session",
} as const satisfies Readonly<Record<Limit["scope"], string>>;

const list = endpoint("GET /v1/spend", {
  name: "limits list",
  about: "List the account's limits of spend, and what is spent of each",
  shows: ({ month, spent, limits }) => {
    const columns: Columns<Limit> = {
      LIMIT: ({ scope }) => scope.replace("_", "-"),
      OF: ({ name, subject }) => (name === "" ? subject : name),
      AMOUNT: amountText,
      EACH: ({ scope }) => PERIODS[scope],
      SPENT: (limit) => limit.spent && spentWords(limit.spent),
    };
    return `${month}: ${spentWords(spent)}\n${recordTable(columns, limits, "No limits.")}`;
  },
});

type AccountScope = Request<"PUT /v1/spend-limits">["payload"]["scope"];

/** A limit in dollars refuses calls of models without a price. Null if each has one, or the limit is in tokens. */
const refusedModels = async (api: () => Client, amount: Amount): Promise<string | null> => {
  if (amount.usd === undefined) return null;
  const { value } = await api().call("GET /v1/model-providers", {});
  const names = value.model_providers.flatMap(({ name, unpriced }) =>
    unpriced.map((model) => `${name}/${model}`),
  );
  return names.length === 0 ? null : safeLine(`${names.join(", ")} (no price is known)`);
};

type SetLimit = Answer<"PUT /v1/spend-limits">;

/** The running sessions that a new limit does not count, each with the command that stops it. Nothing: it counts all. */
export const uncountedLines = ({
  uncounted_sessions: sessions,
}: Pick<SetLimit, "uncounted_sessions">): string => {
  if (sessions.length === 0) return "";
  const [what, how] =
    sessions.length === 1 ? ["a running session", "goes"] : [`${sessions.length} running sessions`, "go"];
  const head = `\nThe limit does not count ${what}, which ${how} on:\n`;
  const rows = sessions.map(({ id, project_id: project, name, reason }) => [
    safeLine(name ?? "-"),
    `platform sessions stop ${id} --project ${project}`,
    safeLine(reason),
  ]);
  return `${head}${table(["SESSION", "STOP IT WITH", "WHY"], rows, "")}`;
};

const REMOVED = "The limit is removed.\n";

/** Sets or removes a limit that owners of the account set. */
const ofAccount = async (
  api: () => Client,
  { scope, subject = "" }: { readonly scope: AccountScope; readonly subject?: string },
  call: Given,
) => {
  const amount = amountIn(call);
  if (amount !== null) {
    const place = { scope, ...(subject !== "" && { subject }) };
    const { value, text } = await api().call("PUT /v1/spend-limits", { payload: { ...place, ...amount } });
    return {
      json: text,
      text:
        fieldLines([
          ["limit", scope.replace("_", "-")],
          ["of", value.name === "" ? null : safeLine(value.name)],
          ["amount", amountText(value)],
          ["spent", value.spent && spentWords(value.spent)],
          ["refuses", await refusedModels(api, amount)],
        ]) + uncountedLines(value),
    };
  }
  const { value } = await api().call("GET /v1/spend", {});
  const limit = value.limits.find((one) => one.scope === scope && one.subject === subject);
  if (limit === undefined)
    throw new Failure(EXIT.notFound, "not_found", { message: "Limit of spend not found." });
  const { text } = await api().call("DELETE /v1/spend-limits/:id", { params: { id: limit.id } });
  return { json: text, text: REMOVED };
};

const account = command({
  name: "limits account",
  about: "Limit what the account spends on models in a month",
  options,
  run: ({ options: given, api }) => ofAccount(api, { scope: "account" }, given),
});

const eachSession = command({
  name: "limits each-session",
  about: "Limit what each session of the account spends, unless it has a limit of its own",
  options,
  run: ({ options: given, api }) => ofAccount(api, { scope: "each_session" }, given),
});

const person = command({
  name: "limits person",
  about: "Limit what a person's sessions spend in a month",
  takes: ["PERSON"],
  options,
  run: ({ given, options: amount, api }) =>
    ofAccount(api, { scope: "person", subject: anyId(given.PERSON, "PERSON") }, amount),
});

const project = command({
  name: "limits project",
  about: "Limit what a project spends in a month",
  takes: ["[PROJECT]"],
  options,
  inProject: true,
  run: async ({ given, options: amount, api, project: here }) => {
    const subject = given.PROJECT === undefined ? await here() : projectId(given.PROJECT);
    return ofAccount(api, { scope: "project", subject }, amount);
  },
});

const session = command({
  name: "limits session",
  about: "Limit what a session spends. After a raise, a message lets its agent go on",
  takes: ["SESSION"],
  options,
  inProject: true,
  run: async ({ given, options: typed, api, project: here }) => {
    const params = { pid: await here(), sid: sessionId(given.SESSION) };
    const payload = amountIn(typed);
    if (payload === null) {
      const { text } = await api().call("DELETE /v1/projects/:pid/sessions/:sid/spend-limit", { params });
      return { json: text, text: REMOVED };
    }
    const { value, text } = await api().call("PUT /v1/projects/:pid/sessions/:sid/spend-limit", {
      params,
      payload,
    });
    const rows = value.limits.map((limit) => [
      limit.scope,
      limit.name,
      amountText(limit),
      amountText({ unit: limit.unit, amount: limit.spent }),
    ]);
    return { json: text, text: table(["LIMIT", "OF", "AMOUNT", "SPENT"], rows, "No limits.") };
  },
});

const trigger = command({
  name: "limits trigger",
  about: "Limit what a trigger's sessions spend in a day",
  takes: ["SLUG"],
  options,
  inProject: true,
  run: async ({ given, options: typed, api, project: here }) => {
    const params = { pid: await here(), slug: segment(given.SLUG, "SLUG") };
    const payload = amountIn(typed);
    if (payload === null) {
      const { text } = await api().call("DELETE /v1/projects/:pid/triggers/:slug/spend-limit", { params });
      return { json: text, text: REMOVED };
    }
    const { value, text } = await api().call("PUT /v1/projects/:pid/triggers/:slug/spend-limit", {
      params,
      payload,
    });
    return {
      json: text,
      text:
        fieldLines([
          ["trigger", safeLine(value.name)],
          ["amount", `${amountText(value)} a day`],
          ["spent", value.spent && spentWords(value.spent)],
        ]) + uncountedLines(value),
    };
  },
});

export const spendCommands = [list, account, eachSession, project, person, trigger, session];
