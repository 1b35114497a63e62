/**
 * `platform models`: providers of models of the account, of a project, and of the person. A key comes from standard input or a file: every program on the machine can see
 * arguments.
 */
import type { Client } from "../../cli/client.ts";
import type { Answer, Request } from "../../cli/contract.ts";
import { type Columns, recordTable } from "../../cli/endpoint/columns.ts";
import { command } from "../../cli/command.ts";
import { choices } from "../../cli/endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../../cli/failure.ts";
import { listWords } from "../../cli/endpoint/fields.ts";
import type { Input } from "../../cli/input.ts";
import { fieldLines, timeOrDash, safeLine } from "../../cli/terminal.ts";
import { parseWord } from "../../cli/words.ts";

type Provider = Answer<"GET /v1/model-providers">["model_providers"][number];

const NAME = "NAME";
const KINDS = choices("POST /v1/model-providers", "kind") as readonly Provider["kind"][];

const owners = {
  project: { value: "PROJECT", about: "Of this project, not of the account" },
  mine: { about: "Your own, for your sessions, not of the account" },
} as const;

interface Given {
  readonly options: { readonly project: string | undefined; readonly mine: boolean };
  readonly api: () => Client;
  readonly project: () => Promise<string>;
}
type Wish = Request<"POST /v1/model-providers">["payload"];
type Change = NonNullable<Request<"PATCH /v1/model-providers/:id">["payload"]>;

/** The calls for the owner that the options name. */
const ownedProviders = async ({ options: { project: named, mine }, api, project }: Given) => {
  if (named !== undefined && mine) throw usageFailure("Give one of --project and --mine.");
  const client = api();
  // The three owners have the same routes, below paths of their own.
  const [owner, params] =
    named === undefined
      ? ([mine ? "/v1/me" : "/v1", {}] as const)
      : (["/v1/projects/:pid", { pid: await project() }] as const);
  const path = `${owner}/model-providers` as "/v1/model-providers";
  return {
    list: () => client.call(`GET ${path}`, { params } as object),
    add: (payload: Wish) => client.call(`POST ${path}`, { params, payload } as { payload: Wish }),
    change: (id: string, payload: Change) =>
      client.call(`PATCH ${path}/:id`, { params: { ...params, id }, payload }),
    remove: (id: string) => client.call(`DELETE ${path}/:id`, { params: { ...params, id } }),
  };
};

const priceWords = ([model, { input, cached, output }]: readonly [
  string,
  Provider["prices"][string],
]): string => `${model} $${input}, cached $${cached}, output $${output}`;

/** Null if the service has all that the provider lists, or was not asked to take them. */
const leftOutWords = ({ models_left_out: count = 0 }: Provider): string | null =>
  count === 0 ? null : `${count} more that the provider lists. --models names others`;

const providerText = (provider: Provider): string =>
  fieldLines([
    ["provider", provider.name],
    ["kind", provider.kind],
    ["address", safeLine(provider.base_url)],
    ["key", provider.has_key ? "kept by the service" : "none"],
    ["models", safeLine(provider.models.map((model) => `${provider.name}/${model}`).join(", "))],
    ["left out", leftOutWords(provider)],
    ["own prices", safeLine(Object.entries(provider.prices).map(priceWords).join("; ")) || null],
    ["tried", provider.tried_at === null ? "no" : timeOrDash(provider.tried_at)],
    [
      "refused",
      provider.refusal && safeLine(`${timeOrDash(provider.refusal.at)} ${provider.refusal.message}`),
    ],
  ]);

const keyFrom = async (input: Input, file: string | undefined): Promise<string> => {
  const question = "Key (not shown; empty if the server needs none): ";
  return (await input.secret(question, file, "--key-file")).replace(/\r?\n$/, "");
};

const keyFile = {
  value: "FILE",
  about: "Take the key from this file; without it, from standard input",
} as const;
const noKey = { about: "The server needs no key" } as const;
const models = {
  value: "MODELS",
  about: "Ids of models, separated by commas, the default first (those that the provider lists)",
} as const;
const noTry = { about: "Save without asking the provider" } as const;

const list = command({
  name: "models providers",
  about: "List providers of models; keys are never shown",
  options: owners,
  run: async (call) => {
    const { value, text } = await (await ownedProviders(call)).list();
    const columns: Columns<Provider> = {
      NAME: "name",
      KIND: "kind",
      TRIED: "tried_at",
      MODELS: ({ models: ids }) => ids.length,
      ADDRESS: "base_url",
    };
    return { json: text, text: recordTable(columns, value.model_providers, "No providers.") };
  },
});

const add = command({
  name: "models add",
  about: "Add a provider of models, without an option for all projects of the account",
  takes: [NAME],
  options: {
    kind: { value: "KIND", about: `${KINDS.join(", ")}` },
    url: { value: "URL", about: "The base URL, as the provider's documents have it (the maker's own)" },
    models,
    "key-file": keyFile,
    "no-key": noKey,
    "no-try": noTry,
    ...owners,
  },
  run: async ({ given, options, input, ...rest }) => {
    const kind = parseWord(options.kind, KINDS, "--kind");
    if (kind === undefined) throw usageFailure(`Give --kind: one of ${KINDS.join(", ")}.`);
    const modelIds = options.models === undefined ? undefined : listWords(options.models);
    const { add: adds } = await ownedProviders({ options, ...rest });
    const { value, text } = await adds({
      name: given.NAME,
      kind,
      key: options["no-key"] ? "" : await keyFrom(input, options["key-file"]),
      ...(options.url !== undefined && { base_url: options.url }),
      ...(modelIds !== undefined && { models: modelIds }),
      ...(options["no-try"] && { try: false }),
    });
    return { json: text, text: providerText(value) };
  },
});

type Providers = Awaited<ReturnType<typeof ownedProviders>>;

const findProvider = async (providers: Providers, name: string): Promise<Provider> => {
  const { value } = await providers.list();
  const provider = value.model_providers.find((one) => one.name === name || one.id === name);
  if (provider === undefined)
    throw new Failure(EXIT.notFound, "not_found", { message: "Model provider not found." });
  return provider;
};

const change = command({
  name: "models change",
  about: "Change a provider's address, key or models",
  takes: [NAME],
  options: {
    url: { value: "URL", about: "The base URL. Another host needs the key again" },
    models,
    "key-file": { value: "FILE", about: "Replace the key by what is in this file; - is standard input" },
    "no-key": noKey,
    "no-try": noTry,
    ...owners,
  },
  run: async ({ given, options, input, ...rest }) => {
    const file = options["key-file"];
    const modelIds = options.models === undefined ? undefined : listWords(options.models);
    const key = options["no-key"]
      ? ""
      : file === undefined
        ? undefined
        : await keyFrom(input, file === "-" ? undefined : file);
    if (options.url === undefined && modelIds === undefined && key === undefined)
      throw usageFailure("Give --url, --models, --key-file or --no-key.");
    const providers = await ownedProviders({ options, ...rest });
    const { value, text } = await providers.change((await findProvider(providers, given.NAME)).id, {
      ...(options.url !== undefined && { base_url: options.url }),
      ...(modelIds !== undefined && { models: modelIds }),
      ...(key !== undefined && { key }),
      ...(options["no-try"] && { try: false }),
    });
    return { json: text, text: providerText(value) };
  },
});

const remove = command({
  name: "models delete",
  about: "Delete a provider of models with its key. Sessions lose it at once",
  asks: "Delete the provider with its key?",
  takes: [NAME],
  options: owners,
  run: async ({ given, ...rest }) => {
    const providers = await ownedProviders(rest);
    const { text } = await providers.remove((await findProvider(providers, given.NAME)).id);
    return { json: text, text: safeLine(`${given.NAME} deleted`) };
  },
});

const number = (text: string | undefined, what: string): number => {
  if (text === undefined || !/^\d{1,5}(?:\.\d{1,6})?$/.test(text))
    throw usageFailure(`Give ${what}: dollars for a million tokens, such as 3 or 0.30.`);
  return Number(text);
};

const price = command({
  name: "models price",
  about: "Set your own price of a model, in dollars for a million tokens",
  takes: ["MODEL"],
  options: {
    input: { value: "DOLLARS", about: "Of the prompt" },
    cached: {
      value: "DOLLARS",
      about: "Of the part of the prompt that the provider had cached (as --input)",
    },
    output: { value: "DOLLARS", about: "Of the answer" },
    remove: { about: "Use the service's price again, if it knows one" },
    ...owners,
  },
  run: async ({ given: { MODEL }, options, ...rest }) => {
    const { input, cached, output, remove: isRemoved } = options;
    const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(MODEL) ?? [];
    if (model === "") throw usageFailure("MODEL must have the form provider/model.");
    const providers = await ownedProviders({ options, ...rest });
    const provider = await findProvider(providers, name);
    const { [model]: _former, ...others } = provider.prices;
    const own = isRemoved
      ? null
      : {
          input: number(input, "--input"),
          cached: number(cached ?? input, "--cached"),
          output: number(output, "--output"),
        };
    const { value: changed, text } = await providers.change(provider.id, {
      prices: { ...others, ...(own !== null && { [model]: own }) },
    });
    return { json: text, text: providerText(changed) };
  },
});

export const modelCommands = [list, add, change, price, remove];
