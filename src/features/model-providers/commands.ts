/**
 * `platform models`: the account's providers of models. A key comes from standard input or a file: every program on the machine can see
 * arguments.
 */
import type { ProviderKind } from "../../domain/sandbox/account-provider.ts";
import type { Answer } from "../../cli/contract.ts";
import { command } from "../../cli/command.ts";
import { EXIT, Failure, usage } from "../../cli/failure.ts";
import type { Input } from "../../cli/input.ts";
import { fields, table, timeOrDash, visible } from "../../cli/terminal.ts";
import { oneOf } from "../../cli/words.ts";

type Provider = Answer<"GET /v1/model-providers">["model_providers"][number];

const NAME = "NAME";
/** The compiler asks for each kind of the service. The command line imports only types of the service. */
const KINDS = Object.keys({
  anthropic: true,
  openai: true,
  "openai-compatible": true,
  gemini: true,
} satisfies Readonly<Record<ProviderKind, true>>) as readonly ProviderKind[];

const priceWords = ([model, { input, cached, output }]: readonly [
  string,
  Provider["prices"][string],
]): string => `${model} $${input}, cached $${cached}, output $${output}`;

const shown = (provider: Provider): string =>
  fields([
    ["provider", provider.name],
    ["kind", provider.kind],
    ["address", visible(provider.base_url)],
    ["key", provider.has_key ? "kept by the service" : "none"],
    ["models", visible(provider.models.map((model) => `${provider.name}/${model}`).join(", "))],
    ["own prices", visible(Object.entries(provider.prices).map(priceWords).join("; ")) || null],
    ["tried", provider.tried_at === null ? "no" : timeOrDash(provider.tried_at)],
  ]);

const listOf = (text: string | undefined): readonly string[] | undefined =>
  text
    ?.split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

const keyFrom = async (input: Input, file: string | undefined): Promise<string> => {
  if (file === undefined && input.isTerminal)
    return await input.hiddenLine("Key (not shown; empty if the server needs none): ");
  const content = file === undefined ? await input.all() : await input.file(file, "--key-file");
  return content.replace(/\r?\n$/, "");
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
  about: "List the account's providers of models; keys are never shown",
  run: async ({ api }) => {
    const { value, text } = await api().call("GET /v1/model-providers", {});
    const rows = value.model_providers.map((provider) => [
      provider.name,
      provider.kind,
      timeOrDash(provider.tried_at),
      String(provider.models.length),
      provider.base_url,
    ]);
    return { json: text, text: table(["NAME", "KIND", "TRIED", "MODELS", "ADDRESS"], rows, "No providers.") };
  },
});

const add = command({
  name: "models add",
  about: "Add a provider of models for all projects of the account",
  takes: [NAME],
  options: {
    kind: { value: "KIND", about: `${KINDS.join(", ")}` },
    url: { value: "URL", about: "The base URL, as the provider's documents have it (the maker's own)" },
    models,
    "key-file": keyFile,
    "no-key": noKey,
    "no-try": noTry,
  },
  run: async ({ given, options, input, api }) => {
    const kind = oneOf(options.kind, KINDS, "--kind");
    if (kind === undefined) throw usage(`Give --kind: one of ${KINDS.join(", ")}.`);
    const chosen = listOf(options.models);
    const { value, text } = await api().call("POST /v1/model-providers", {
      payload: {
        name: given.NAME,
        kind,
        key: options["no-key"] ? "" : await keyFrom(input, options["key-file"]),
        ...(options.url !== undefined && { base_url: options.url }),
        ...(chosen !== undefined && { models: chosen }),
        ...(options["no-try"] && { try: false }),
      },
    });
    return { json: text, text: shown(value) };
  },
});

type Api = Parameters<Parameters<typeof command>[0]["run"]>[0]["api"];

const providerOf = async (api: Api, name: string): Promise<Provider> => {
  const { value } = await api().call("GET /v1/model-providers", {});
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
  },
  run: async ({ given, options, input, api }) => {
    const file = options["key-file"];
    const chosen = listOf(options.models);
    const key = options["no-key"]
      ? ""
      : file === undefined
        ? undefined
        : await keyFrom(input, file === "-" ? undefined : file);
    if (options.url === undefined && chosen === undefined && key === undefined)
      throw usage("Give --url, --models, --key-file or --no-key.");
    const { value, text } = await api().call("PATCH /v1/model-providers/:id", {
      params: { id: (await providerOf(api, given.NAME)).id },
      payload: {
        ...(options.url !== undefined && { base_url: options.url }),
        ...(chosen !== undefined && { models: chosen }),
        ...(key !== undefined && { key }),
        ...(options["no-try"] && { try: false }),
      },
    });
    return { json: text, text: shown(value) };
  },
});

const remove = command({
  name: "models delete",
  about: "Delete a provider of models with its key. Sessions lose it at once",
  asks: "Delete the provider with its key?",
  takes: [NAME],
  run: async ({ given, api }) => {
    const { text } = await api().call("DELETE /v1/model-providers/:id", {
      params: { id: (await providerOf(api, given.NAME)).id },
    });
    return { json: text, text: visible(`${given.NAME} deleted`) };
  },
});

const number = (text: string | undefined, what: string): number => {
  if (text === undefined || !/^\d{1,5}(?:\.\d{1,6})?$/.test(text))
    throw usage(`Give ${what}: dollars for a million tokens, such as 3 or 0.30.`);
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
  },
  run: async ({ given: { MODEL }, options: { input, cached, output, remove: isRemoved }, api }) => {
    const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(MODEL) ?? [];
    if (model === "") throw usage("MODEL must have the form provider/model.");
    const provider = await providerOf(api, name);
    const { [model]: _former, ...others } = provider.prices;
    const own = isRemoved
      ? null
      : {
          input: number(input, "--input"),
          cached: number(cached ?? input, "--cached"),
          output: number(output, "--output"),
        };
    const { value: changed, text } = await api().call("PATCH /v1/model-providers/:id", {
      params: { id: provider.id },
      payload: { prices: { ...others, ...(own !== null && { [model]: own }) } },
    });
    return { json: text, text: shown(changed) };
  },
});

export const modelCommands = [list, add, change, price, remove];
