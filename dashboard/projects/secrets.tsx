/** A project's secrets: which the manifest declares, which have a value, and who can read them. */
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { moment } from "../elements/format.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { FrameAct, RoleAct } from "../ui/act.tsx";
import { CheckField, Form, SecretField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, Codes, Detail, Empty, Row, Tag, Time } from "../ui/parts.tsx";
import { TryKey } from "./acts.tsx";
import { headOf } from "./head.tsx";
import { useKeySaving } from "./use-key-saving.ts";

type Listing = Answer<"GET /v1/projects/:pid/secrets">;
type Secret = Listing["secrets"][number];

const remove = async (pid: string, { name }: Secret): Promise<void> => {
  const sure = await ask({
    title: `Delete “${name}”?`,
    text: "Its value cannot be restored. Running sessions lose it after their current turn.",
    confirm: "Delete",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/secrets/:name", { params: { pid, name } });
  notice(`${name} was deleted.`);
};

const SetButton = ({
  pid,
  name,
  isSet,
}: {
  readonly pid: string;
  readonly name: string;
  readonly isSet: boolean;
}) => {
  const label = isSet ? "Replace" : "Set";
  return (
    <FrameAct
      name="set-secret"
      input={{ project: pid, secret: name, rotates: isSet ? "yes" : "" }}
      label={`${label} ${name}`}
      className="plain"
    >
      {label}
    </FrameAct>
  );
};

const UnsetRow = ({
  pid,
  name,
  isMissing,
}: {
  readonly pid: string;
  readonly name: string;
  readonly isMissing: boolean;
}) => (
  <Row
    states={isMissing ? <Tag tone="bad">missing</Tag> : <Tag>optional, not set</Tag>}
    actions={<SetButton pid={pid} name={name} isSet={false} />}
  >
    <code>{name}</code>
    <Detail>Declared in platform.toml</Detail>
  </Row>
);

interface About {
  readonly pid: string;
  readonly secret: Secret;
  readonly declared: Listing["declared"];
}

const SecretActs = ({ pid, secret }: Omit<About, "declared">) => (
  <>
    {secret.provider !== null && <TryKey pid={pid} names={[secret.name]} about={secret.name} />}
    <SetButton pid={pid} name={secret.name} isSet />
    <RoleAct entry="delete-secret" label="Delete" about={secret.name} does={() => remove(pid, secret)} />
  </>
);

const SecretRow = ({ pid, secret, declared }: About) => {
  const { name, masked, unseen, service, updated_at: updated, previous_valid_until: until } = secret;
  return (
    <Row
      states={
        <>
          {service && <Tag>the service's own</Tag>}
          {declared.required.includes(name) && <Tag>required</Tag>}
          {declared.optional.includes(name) && <Tag>optional</Tag>}
        </>
      }
      actions={<SecretActs pid={pid} secret={secret} />}
    >
      <code>{name}</code>
      <Detail>
        Set <Time at={updated} />
      </Detail>
      {until !== null && (
        <Detail>{`The previous value still verifies webhooks until ${moment(until)}.`}</Detail>
      )}
      {unseen.length > 0 && <span className="reason">{`The value ${unseen.join(" and ")}.`}</span>}
      {!masked && (
        <span className="reason">
          Not masked in logs: the value is shorter than 6 bytes. Set a longer one.
        </span>
      )}
    </Row>
  );
};

const AddForm = ({ pid, set }: { readonly pid: string; readonly set: readonly Secret[] }) => {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const wanted = name.trim();
  const isTaken = set.some((secret) => secret.name === wanted);
  const { other, save } = useKeySaving();
  const add = async ({ service }: Readonly<Record<string, string>>, isUntried: boolean): Promise<void> => {
    await save([pid, wanted], { value, ...(service !== undefined && { service: true }) }, isUntried);
    setName("");
    setValue("");
    notice(isTaken ? `The value of ${wanted} is replaced.` : `${wanted} is set.`);
  };
  return (
    <Form entry="add-secret" submit="Add the secret" sending="Saving…" other={other} onSend={add}>
      <TextField
        name="name"
        label="Name"
        hint="Letters `A-Z`, digits and `_`. Agents see it as a variable of this name."
        placeholder="NPM_TOKEN"
        required
        mono
        value={name}
        onWrite={setName}
      />
      <p role="status">
        {isTaken && (
          <>
            This replaces the value of <code>{wanted}</code>. The old value cannot be read any more.
          </>
        )}
      </p>
      <SecretField
        name="value"
        label="Value"
        hint="It may have several lines, such as a private key. Agents get it exactly as it is here. The key of a model provider is tried first."
        required
        value={value}
        onWrite={setValue}
      />
      <CheckField
        name="service"
        label="Keep it to the service"
        hint="For secrets that verify webhooks. No agent gets it."
      />
    </Form>
  );
};

interface Shown {
  readonly project: Project;
  readonly listing: Listing;
}

const Secrets = ({ data: { project, listing } }: { readonly data: Shown }) => {
  const { secrets: set, declared } = listing;
  const unset = [...declared.required, ...declared.optional].filter(
    (name) => !set.some((secret) => secret.name === name),
  );
  return (
    <>
      <p className="quiet">
        The agent of every session gets these secrets as environment variables, except those that are the
        service's own. Everyone who can talk to an agent of this project can make it use them. No page and no
        answer of the API shows a value.
      </p>
      {declared.missing.length > 0 && (
        <Callout tone="warn">
          Sessions start without these required secrets: <Codes names={declared.missing} />.
        </Callout>
      )}
      {set.length + unset.length === 0 ? (
        <Empty title="No secrets yet.">
          Add the key of a model provider, or what the agent's commands need.
        </Empty>
      ) : (
        <ul className="rows">
          {unset.map((name) => (
            <UnsetRow key={name} pid={project.id} name={name} isMissing={declared.missing.includes(name)} />
          ))}
          {set.map((secret) => (
            <SecretRow key={secret.name} pid={project.id} secret={secret} declared={declared} />
          ))}
        </ul>
      )}
      <section>
        <h2>Add a secret</h2>
        <AddForm pid={project.id} set={set} />
      </section>
    </>
  );
};

export const secrets = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, listing] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      request("GET /v1/projects/:pid/secrets", { params }),
    ]);
    return { project, listing };
  },
  title: ({ project }) => `Secrets of ${project.name}`,
  head: headOf("/secrets"),
  Body: Secrets,
});
