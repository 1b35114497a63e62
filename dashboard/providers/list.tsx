/** A list of providers of models, of whoever owns them, with what can be done. */
import { useState } from "react";
import { counted } from "../elements/format.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { Act } from "../ui/act.tsx";
import { useAddressQuery } from "../ui/address.ts";
import { Form, SelectField, TextField } from "../ui/form.tsx";
import { Codes, Detail, Row, Tag, Time } from "../ui/parts.tsx";
import { UNTRIED } from "../projects/key-saving.ts";
import type { Place, Provider } from "./place.ts";

type Typed = Readonly<Record<string, string>>;
interface Shown {
  readonly place: Place;
  readonly provider: Provider;
}

const KINDS = Object.entries({
  anthropic: "Anthropic",
  openai: "OpenAI",
  "openai-compatible": "OpenAI-compatible (Azure, Ollama, vLLM and others)",
  gemini: "Google Gemini",
} satisfies Readonly<Record<Provider["kind"], string>>);

const modelsIn = (text = ""): readonly string[] => text.split(/[\s,]+/).filter((model) => model !== "");

/** How many models a provider lists beside those that were saved, by its id. Only the answer to a save says it. */
const leftOut = new Map<string, number>();

const noteSave = ({ id, name, models, models_left_out: others = 0, tried_at: tried }: Provider): void => {
  leftOut.set(id, others);
  notice(
    tried === null
      ? `${name} is saved without a try.`
      : `${name} accepts the key. Sessions can use ${models.length === 1 ? "its model" : counted(models.length, "model")}.`,
  );
};

const add = async (
  place: Place,
  { name = "", kind, base_url: url, key = "", models }: Typed,
  isUntried: boolean,
) => {
  const made = await place.add({
    name,
    kind: kind as Provider["kind"],
    key,
    models: modelsIn(models),
    ...(url !== undefined && url !== "" && { base_url: url }),
    ...(isUntried && { try: false }),
  });
  noteSave(made);
};

const change = async (
  { place, provider: { id } }: Shown,
  { base_url: url, key = "", models }: Typed,
  isUntried: boolean,
) => {
  const changed = await place.change(id, {
    models: modelsIn(models),
    ...(url !== undefined && url !== "" && { base_url: url }),
    ...(key !== "" && { key }),
    ...(isUntried && { try: false }),
  });
  noteSave(changed);
};

const remove = async ({ place, provider: { id, name } }: Shown): Promise<void> => {
  const sure = await ask({
    title: `Delete “${name}”?`,
    text: "Its key is deleted. Running sessions lose it with their next call of a model. What was counted stays.",
    confirm: "Delete",
    danger: true,
  });
  if (sure === null) return;
  await place.remove(id);
  notice(`${name} is deleted.`);
};

/** A provider may list hundreds. */
const SHOWN_MODELS = 6;

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

const ChangeForm = ({ onDone, ...shown }: Shown & { readonly onDone: () => void }) => (
  <Form
    submit="Try and save"
    sending="Trying…"
    other={UNTRIED}
    onSend={async (typed, isUntried) => {
      await change(shown, typed, isUntried);
      onDone();
    }}
  >
    <TextField
      name="base_url"
      label="Base URL"
      hint="An address at another host needs the key again."
      initial={shown.provider.base_url}
      mono
      required
    />
    <TextField
      name="key"
      label="Key"
      type="password"
      hint={shown.provider.has_key ? "Empty: the present key stays." : "Empty: the server needs none."}
    />
    <ModelsField initial={shown.provider.models.join("\n")} />
  </Form>
);

const ProviderRow = ({ governs, ...shown }: Shown & { readonly governs: boolean }) => {
  const { place, provider } = shown;
  // A link about its key leads to the form.
  const isAsked = useAddressQuery().get("change") === provider.name && place.key !== "own";
  const [isOpen, setOpen] = useState(isAsked);
  const { id, name, kind, base_url: url, models, has_key: hasKey, tried_at: tried, refusal } = provider;
  const others = leftOut.get(id) ?? 0;
  const offered = models.map((model) => `${name}/${model}`);
  const row = (
    <Row
      states={
        <>
          <Tag>{kind}</Tag>
          {!hasKey && <Tag>no key</Tag>}
          {tried === null && <Tag tone="warn">not tried</Tag>}
          {refusal !== null && <Tag tone="bad">refuses</Tag>}
        </>
      }
      actions={
        governs && (
          <>
            <Act label={isOpen ? "Cancel" : "Change"} about={name} does={async () => setOpen(!isOpen)} />
            <Act label="Delete" about={name} does={() => remove(shown)} />
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
      {refusal !== null && (
        <Detail>
          {`${refusal.message} The last call, `}
          <Time at={refusal.at} />
        </Detail>
      )}
      <Detail>
        <Codes names={offered.slice(0, SHOWN_MODELS)} />
        {offered.length > SHOWN_MODELS && ` and ${offered.length - SHOWN_MODELS} more`}
      </Detail>
      {others > 0 && (
        <Detail>{`Its list has ${counted(others, "more model")}, left out here. Change it to name others.`}</Detail>
      )}
    </Row>
  );
  return (
    <>
      {row}
      {governs && isOpen && (
        <li>
          <ChangeForm {...shown} onDone={() => setOpen(false)} />
        </li>
      )}
    </>
  );
};

/** Its fields exist while it is open, so that a page with several has each label once. */
interface Adding {
  readonly place: Place;
  readonly title: string;
  /** Whether there is no other provider: then the form is open. */
  readonly isFirst?: boolean;
}

export const AddForm = ({ place, title, isFirst = false }: Adding) => {
  const [isOpen, setOpen] = useState(isFirst);
  return (
    <details className="group" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && (
        <Form
          submit="Try and save"
          sending="Trying…"
          other={UNTRIED}
          onSend={async (typed, isUntried) => {
            await add(place, typed, isUntried);
            setOpen(false);
          }}
        >
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
            hint="As the provider's documents have it, such as https://example.openai.azure.com/openai/v1. Empty: the maker's own. A server with plain http or on a private network needs the operator's setting PLATFORM_CONNECTOR_ALLOW_HOSTS, with its host, and a restart."
            mono
          />
          <TextField name="key" label="Key" type="password" hint="Empty: the server needs none." />
          <ModelsField />
        </Form>
      )}
    </details>
  );
};

export const ProviderRows = ({
  place,
  providers,
  governs,
}: {
  readonly place: Place;
  readonly providers: readonly Provider[];
  readonly governs: boolean;
}) => (
  <ul className="rows">
    {providers.map((provider) => (
      <ProviderRow key={provider.id} place={place} provider={provider} governs={governs} />
    ))}
  </ul>
);
