/** The form of a trigger, new or known: its fields, its lines in platform.toml as they are typed, and how it is saved. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { keep, readKept } from "../frame/kept.ts";
import { AGENT_HINT } from "../projects/start.ts";
import { lackedRole } from "../frame/roles.ts";
import { FieldGroup, Form, TextField } from "../ui/form.tsx";
import { CopyBlock, Tag } from "../ui/parts.tsx";
import { mayMerge, save, type Wish } from "./changes.ts";
import { CronFields, type Write } from "./schedule-fields.tsx";
import { type Known, MakeSecret, Senders } from "./senders.tsx";
import { type Typed, typedOf, wishOf, withSlug } from "./typed.ts";

type Draft = Answer<"POST /v1/projects/:pid/triggers/drafts">;

/** Long enough for the next key. */
const SETTLE_MS = 300;

/** What is typed, once the reader rests. */
const useSettled = <A,>(value: A): A => {
  const [settled, setSettled] = useState(value);
  const key = JSON.stringify(value);
  useEffect(() => {
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const timer = setTimeout(() => setSettled(JSON.parse(key) as A), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return settled;
};

/** What the service says of the description. While it does not answer, the form still works: sending it says what is wrong. */
const useTriggerDraft = (pid: string, wish: Wish, replaces: string | null): Draft | null => {
  const settled = useSettled(wish);
  const { data = null } = useQuery({
    queryKey: ["trigger draft", pid, replaces, settled],
    queryFn: () =>
      request("POST /v1/projects/:pid/triggers/drafts", {
        params: { pid },
        payload: { ...settled, ...(replaces !== null && { replaces }) },
      }),
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  return data;
};

const SecretField = ({ typed, write, project, secrets }: Write & Known) => {
  const name = typed.secret_env.trim();
  const isSet = secrets?.has(name) === true;
  return (
    <>
      <TextField
        name="secret_env"
        label="Secret"
        hint="The name of the project's secret with which the sender signs. The file never contains its value."
        suggestions={[...(secrets?.keys() ?? [])]}
        required
        mono
        value={typed.secret_env}
        onWrite={(secret_env) => write({ secret_env })}
      />
      {name !== "" && (
        <p className="parts after-field">
          {secrets !== null && (isSet ? <Tag>has a value</Tag> : <Tag tone="bad">has no value</Tag>)}
          {lackedRole("make-webhook-secret") === null ? (
            <MakeSecret project={project} secrets={secrets} name={name} />
          ) : (
            <span className="quiet">An owner of the project sets its value.</span>
          )}
        </p>
      )}
    </>
  );
};

const WebhookFields = ({ typed, write, project, secrets }: Write & Known) => (
  <>
    <SecretField typed={typed} write={write} project={project} secrets={secrets} />
    <TextField
      name="events"
      label="Events"
      hint="Optional. Only these start a session, for example `push, pull_request.opened`. If this is empty, every delivery does."
      mono
      value={typed.events}
      onWrite={(events) => write({ events })}
    />
    <TextField
      name="branches"
      label="Branches"
      hint="Optional. For example `main, release/*`."
      mono
      value={typed.branches}
      onWrite={(branches) => write({ branches })}
    />
    <TextField
      name="if"
      label="Conditions"
      hint='Optional. One a line: a path, and the value that it must have, for example `body.action = "opened"`.'
      lines={2}
      mono
      value={typed.if}
      onWrite={(text) => write({ if: text })}
    />
  </>
);

const PROMPT_HINTS = {
  cron: "The session's first message. `{{ cron.fired_at }}` becomes the due instant.",
  webhook:
    "The session's first message. `{{ body.head_commit.message }}` becomes that value of the delivery.",
} as const;

const Lines = ({ lines, isNew, branch }: { lines: string | null; isNew: boolean; branch: string }) => (
  <section className="lines">
    <h3>
      Lines of <code>platform.toml</code>
    </h3>
    {lines === null ? (
      <p className="quiet">The lines appear here when all fields are valid.</p>
    ) : (
      <CopyBlock text={lines} what="the lines" />
    )}
    <p className="quiet">
      {isNew
        ? "A commit with you as the author adds them at the end of the file. "
        : "A commit with you as the author changes only the lines that differ. Comments stay. "}
      The trigger works like this as soon as the change is on <code>{branch}</code>.
    </p>
  </section>
);

export interface TriggerForm extends Known {
  /** What the form begins with. */
  readonly wish: Wish;
  /** The slug of the trigger that is edited. Null: it is new. */
  readonly replaces: string | null;
  /** The name under which the tab keeps what is typed until it is saved. */
  readonly keeps: string;
}

/** What is typed. The tab keeps it. */
const useTyped = ({ keeps, wish }: TriggerForm): Write => {
  const [typed, setTyped] = useState<Typed>(() => ({ ...typedOf(wish), ...readKept(keeps) }));
  return {
    typed,
    write: (part) => {
      const next = { ...typed, ...part };
      setTyped(next);
      keep(keeps, next);
    },
  };
};

/** Only what is typed can be wrong so far. */
const notedIn = (draft: Draft | null, typed: Typed): ReadonlyMap<string, string> =>
  new Map(
    (draft?.issues ?? []).flatMap(({ path, message }) => {
      const text = new Map<string, string>(Object.entries(typed)).get(path) ?? "";
      return text === "" ? [] : [[path, message] as const];
    }),
  );

const NameFields = ({ typed, write }: Write) => (
  <FieldGroup title="Name and agent" isOpen={typed.name !== "" || typed.title !== "" || typed.agent !== ""}>
    <TextField
      name="name"
      label="Name"
      hint="Optional. It is shown to people instead of the slug."
      value={typed.name}
      onWrite={(name) => write({ name })}
    />
    <TextField
      name="title"
      label="Title of its sessions"
      hint="Optional. With the prompt's variables, for example `Triage #{{ body.issue.number }}`. If this is empty, it is the name."
      value={typed.title}
      onWrite={(title) => write({ title })}
    />
    <TextField
      name="agent"
      label="Agent"
      hint={AGENT_HINT}
      placeholder="default"
      mono
      value={typed.agent}
      onWrite={(agent) => write({ agent })}
    />
  </FieldGroup>
);

/** The sender's steps, as soon as the trigger's address is known. */
const DraftSenders = ({
  wish,
  draft,
  ...known
}: Known & { readonly wish: Wish; readonly draft: Draft | null }) => {
  if (draft?.webhook_url === undefined || draft.webhook_url === null) return null;
  const {
    slug = "",
    secret_env = "",
    prompt = "",
    events = null,
    branches = null,
    if: conditions = null,
  } = wish;
  const receiver = {
    slug,
    secret: secret_env,
    url: draft.webhook_url,
    prompt,
    filter: { events, branches, if: conditions },
  };
  return <Senders receiver={receiver} {...known} />;
};

export const TriggerForm = (form: TriggerForm) => {
  const { project, secrets, replaces, keeps } = form;
  const { type, enabled } = form.wish;
  const { typed, write } = useTyped(form);
  const wish: Wish = { ...wishOf(type, typed), ...(enabled !== undefined && { enabled }) };
  const draft = useTriggerDraft(project.id, wish, replaces);
  const merges = mayMerge();
  const send = async (isOther: boolean): Promise<void> => {
    const goOn = await save({ pid: project.id, wish, replaces, merge: merges && !isOther });
    keep(keeps, null);
    goOn();
  };
  return (
    <div className="beside">
      <Form
        submit={merges ? "Save and merge" : "Open a change request"}
        other={merges ? "Open a change request" : undefined}
        sending="Writing the commit…"
        noted={notedIn(draft, typed)}
        onSend={(_typed, isOther) => send(isOther)}
      >
        {replaces === null && (
          <TextField
            name="slug"
            label="Slug"
            hint="The trigger's name in addresses: `a-z`, `0-9`, `_` and `-`."
            required
            mono
            value={typed.slug}
            onWrite={(slug) => write(withSlug(typed, slug))}
          />
        )}
        {type === "cron" ? (
          <CronFields typed={typed} write={write} upcoming={draft?.upcoming ?? []} />
        ) : (
          <WebhookFields typed={typed} write={write} project={project} secrets={secrets} />
        )}
        <TextField
          name="prompt"
          label="Prompt"
          hint={PROMPT_HINTS[type]}
          lines={8}
          required
          value={typed.prompt}
          onWrite={(prompt) => write({ prompt })}
        />
        <NameFields typed={typed} write={write} />
      </Form>
      <div>
        <Lines lines={draft?.lines ?? null} isNew={replaces === null} branch={project.default_branch} />
        <DraftSenders wish={wish} draft={draft} project={project} secrets={secrets} />
      </div>
    </div>
  );
};
