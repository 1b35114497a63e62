/** The account's providers of models. An owner adds, changes and deletes them; others read them. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { ask } from "../frame/dialog.js";
import { notice } from "../frame/notices.js";
import { Act } from "../ui/act.tsx";
import { useAddressQuery } from "../ui/address.ts";
import { Form, SelectField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Limits, spendQuery } from "./limits.tsx";
import { Prices } from "./prices.tsx";
import { Codes, Detail, Empty, Row, Tag, Time } from "../ui/parts.tsx";

type Provider = Answer<"GET /v1/model-providers">["model_providers"][number];
type Typed = Readonly<Record<string, string>>;

const providersQuery = queryOptions({
  queryKey: ["model-providers"],
  queryFn: async () => (await request("GET /v1/model-providers", {})).model_providers,
});

const KINDS = Object.entries({
  anthropic: "Anthropic",
  openai: "OpenAI",
  "openai-compatible": "OpenAI-compatible (Azure, Ollama, vLLM and others)",
  gemini: "Google Gemini",
} satisfies Readonly<Record<Provider["kind"], string>>);

const modelsIn = (text = ""): readonly string[] => text.split(/[\s,]+/).filter((model) => model !== "");

const noticeOf = ({ name, models, tried_at: tried }: Provider): void =>
  notice(
    tried === null
      ? `${name} is saved without a try.`
      : `${name} accepts the key. Sessions can use ${models.length === 1 ? "its model" : `${models.length} models`}.`,
  );

const add = async ({ name = "", kind, base_url: url, key = "", models }: Typed, isUntried: boolean) => {
  const made = await request("POST /v1/model-providers", {
    payload: {
      name,
      kind: kind as Provider["kind"],
      key,
      models: modelsIn(models),
      ...(url !== undefined && url !== "" && { base_url: url }),
      ...(isUntried && { try: false }),
    },
  });
  noticeOf(made);
};

const change = async (id: string, { base_url: url, key = "", models }: Typed, isUntried: boolean) => {
  const changed = await request("PATCH /v1/model-providers/:id", {
    params: { id },
    payload: {
      models: modelsIn(models),
      ...(url !== undefined && url !== "" && { base_url: url }),
      ...(key !== "" && { key }),
      ...(isUntried && { try: false }),
    },
  });
  noticeOf(changed);
};

const remove = async ({ id, name }: Provider): Promise<void> => {
  const sure = await ask({
    title: `Delete ${name}?`,
    text: "Its key is deleted. Running sessions lose it with their next call of a model. What was counted stays.",
    confirm: "Delete",
  });
  if (sure === null) return;
  await request("DELETE /v1/model-providers/:id", { params: { id } });
  notice(`${name} is deleted.`);
};

/** A provider may list hundreds. */
const SHOWN_MODELS = 6;
const UNTRIED = "Save without a try";

const ModelsField = ({ initial }: { readonly initial?: string }) => (
  <TextField
    name="models"
    label="Models"
    hint="Their ids, separated by blanks or commas. The first one is the default. Empty: those that the provider lists."
    lines={3}
    mono
    {...(initial !== undefined && { initial })}
  />
);

const ChangeForm = ({ provider, onDone }: { readonly provider: Provider; readonly onDone: () => void }) => (
  <Form
    submit="Try and save"
    sending="Trying…"
    other={UNTRIED}
    onSend={async (typed, isUntried) => {
      await change(provider.id, typed, isUntried);
      onDone();
    }}
  >
    <TextField
      name="base_url"
      label="Base URL"
      hint="An address at another host needs the key again."
      initial={provider.base_url}
      mono
      required
    />
    <TextField
      name="key"
      label="Key"
      type="password"
      hint={provider.has_key ? "Empty: the present key stays." : "Empty: the server needs none."}
    />
    <ModelsField initial={provider.models.join("\n")} />
  </Form>
);

const ProviderRow = ({ provider, governs }: { readonly provider: Provider; readonly governs: boolean }) => {
  // A link about its key leads to the form.
  const isAsked = useAddressQuery().get("change") === provider.name;
  const [isOpen, setOpen] = useState(isAsked);
  const { name, kind, base_url: url, models, has_key: hasKey, tried_at: tried } = provider;
  const offered = models.map((model) => `${name}/${model}`);
  const row = (
    <Row
      states={
        <>
          <Tag>{kind}</Tag>
          {!hasKey && <Tag>no key</Tag>}
          {tried === null && <Tag tone="warn">not tried</Tag>}
        </>
      }
      actions={
        governs && (
          <>
            <Act label={isOpen ? "Close" : "Change"} about={name} does={async () => setOpen(!isOpen)} />
            <Act label="Delete" about={name} does={() => remove(provider)} />
          </>
        )
      }
    >
      <strong>{name}</strong>
      <Detail>
        {url}
        {tried !== null && " · the key was accepted when it was last tried, "}
        {tried !== null && <Time at={tried} />}
      </Detail>
      <Detail>
        <Codes names={offered.slice(0, SHOWN_MODELS)} />
        {offered.length > SHOWN_MODELS && ` and ${offered.length - SHOWN_MODELS} more`}
      </Detail>
    </Row>
  );
  return (
    <>
      {row}
      {isOpen && (
        <li>
          <ChangeForm provider={provider} onDone={() => setOpen(false)} />
        </li>
      )}
    </>
  );
};

const AddForm = () => (
  <section>
    <h2>Add a provider</h2>
    <Form submit="Try and save" sending="Trying…" other={UNTRIED} onSend={add}>
      <TextField
        name="name"
        label="Name"
        hint="The first part of provider/model. Lower-case letters, digits and -. It cannot be changed later."
        mono
        required
      />
      <SelectField name="kind" label="Kind" options={KINDS} />
      <TextField
        name="base_url"
        label="Base URL"
        hint="As the provider's documents have it, such as https://example.openai.azure.com/openai/v1. Empty: the maker's own."
        mono
      />
      <TextField name="key" label="Key" type="password" hint="Empty: the server needs none." />
      <ModelsField />
    </Form>
  </section>
);

const Models = ({ me }: { readonly me: Answer<"GET /v1/me"> | null }) => {
  const { data: providers = [] } = useQuery(providersQuery);
  const governs = me?.user.role === "owner";
  return (
    <>
      <h1>Models</h1>
      <p className="quiet">
        All projects of the account can use the models of these providers. Their keys stay in the service: no
        sandbox gets one, and the tokens of each call are counted.
        {!governs && " Only owners of the account change this list."}
      </p>
      {providers.length === 0 ? (
        <Empty title="The account has no provider of models.">
          Until it has one, sessions use the operator&apos;s gateway, or keys that are secrets of projects.
        </Empty>
      ) : (
        <ul className="rows">
          {providers.map((provider) => (
            <ProviderRow key={provider.id} provider={provider} governs={governs} />
          ))}
        </ul>
      )}
      {governs && <AddForm />}
      {governs && <Limits />}
      {governs && <Prices providers={providers} />}
    </>
  );
};

export const pages = {
  providers: framedPage<void>({
    load: async () => {
      // Only owners may read what the account spent.
      await Promise.all([queries.query(providersQuery), queries.query(spendQuery).catch(() => undefined)]);
    },
    title: () => "Models",
    Body: Models,
  }),
};
