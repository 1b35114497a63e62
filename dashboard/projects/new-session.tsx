/** A new session: what the agent is told, and on which branch, as which agent and with which model it works. */
import { type ReactNode, useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { lastChoice, rememberChoice } from "../home/choices.ts";
import {
  agentOffers,
  type Choice,
  effortOffers,
  modelOffers,
  NO_OPTIONS,
  planOffers,
  type SessionOptions,
  whyNoEffort,
  withAgent,
} from "../home/fitting.ts";
import { offered, Offers } from "../home/offers.tsx";
import { FieldFrame, FileField, Form, SelectField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { ModelMenu } from "../ui/model-menu.tsx";
import { headOf } from "./head.tsx";
import { isArchived } from "./project.ts";
import { AGENT_HINT, draftName, PROMPT, startIn, warmSandbox } from "./start.ts";

type Me = Answer<"GET /v1/me">;

interface Shown {
  readonly project: Project;
  /** Null: they cannot be read now. */
  readonly options: SessionOptions | null;
}

/** The value of the last choice of a menu, which opens a field for a name that is not offered. */
const OTHER = "other name";

interface Menu {
  /** Empty while the name is typed: the field has it then. */
  readonly name: string;
  readonly value: string;
  readonly choose: (value: string) => void;
}

interface Named {
  readonly name: "agent_name" | "agent_model";
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly onChoose: (value: string) => void;
  /** The menu itself. One of its rows has the value `OTHER`. */
  readonly menu: (parts: Menu) => ReactNode;
}

/** A menu of what is offered. A name that is not offered can be typed. */
const NamedField = ({ name, label, hint, value, onChoose, menu }: Named) => {
  const [isOther, setOther] = useState(false);
  const choose = (chosen: string): void => {
    setOther(chosen === OTHER);
    onChoose(chosen === OTHER ? "" : chosen);
  };
  return (
    <>
      {menu({ name: isOther ? "" : name, value: isOther ? OTHER : value, choose })}
      {isOther && (
        <TextField
          name={name}
          label={`${label}, by name`}
          hint={hint}
          value={value}
          onWrite={onChoose}
          mono
        />
      )}
    </>
  );
};

interface ChoiceParts {
  readonly options: SessionOptions;
  readonly choice: Choice;
  readonly choose: (choice: Choice) => void;
}

/** What the first page's composer offers, too. */
const AgentFields = ({ options, choice, choose }: ChoiceParts) => {
  const efforts = effortOffers(options, choice.agent_name);
  const noEffort = whyNoEffort(options, choice.agent_name);
  return (
    <>
      <NamedField
        name="agent_name"
        label="Agent"
        hint={AGENT_HINT}
        value={choice.agent_name}
        onChoose={(name) => choose(withAgent(options, choice, name))}
        menu={({ name, value, choose: write }) => (
          <SelectField name={name} label="Agent" value={value} onWrite={write}>
            <Offers offers={[...agentOffers(options), offered(OTHER, "Another agent")]} chosen={value} />
          </SelectField>
        )}
      />
      <NamedField
        name="agent_model"
        label="Model"
        hint="In the form `provider/model`, or as the agent's runtime names it."
        value={choice.agent_model}
        onChoose={(agent_model) => choose({ ...choice, agent_model })}
        menu={({ name, value, choose: write }) => (
          <FieldFrame
            name={name}
            label="Model"
            input={(field) => (
              <ModelMenu
                label="Model"
                field={field}
                {...modelOffers(options, choice.agent_name)}
                other={{ value: OTHER, words: "Another model" }}
                value={value}
                onChoose={write}
              />
            )}
          />
        )}
      />
      <SelectField
        name="mode"
        label="Plan"
        hint="“Plan first”: the agent reads and plans, and waits for your approval before it changes anything. It needs a text above."
        value={choice.mode}
        onWrite={(mode) => choose({ ...choice, mode })}
      >
        <Offers offers={planOffers(options, choice.agent_name)} chosen={choice.mode} />
      </SelectField>
      {(efforts.length > 0 || noEffort !== null) && (
        <SelectField
          name="effort"
          label="Effort"
          hint={
            noEffort ??
            "How hard the model thinks about the text above. A model that does not take it says so."
          }
          value={choice.effort}
          onWrite={(effort) => choose({ ...choice, effort })}
          isOff={noEffort !== null}
        >
          <Offers offers={noEffort === null ? efforts : [offered("", "No choice")]} chosen={choice.effort} />
        </SelectField>
      )}
    </>
  );
};

/** As the person started the last session in the project. */
const useChoice = (person: string, pid: string) => {
  const [choice, setChoice] = useState(() => lastChoice(person, pid));
  const choose = (next: Choice): void => {
    setChoice(next);
    rememberChoice(person, pid, next);
  };
  return { choice, choose };
};

const StartForm = ({
  project: { id: pid, default_branch: branch },
  options,
  person,
}: Shown & { readonly person: string }) => {
  const [files, setFiles] = useState<readonly File[]>([]);
  const { choice, choose } = useChoice(person, pid);
  const start = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    const { initial_prompt = "", name = "", base_ref = "" } = typed;
    location.hash = (await startIn(pid, { initial_prompt, name, ...choice, base_ref }, files)) ?? "#/";
  };
  return (
    <Form
      entry="start-session"
      submit="Start session"
      sending="Starting…"
      keeps={draftName(pid)}
      onWrite={() => warmSandbox(pid)}
      onSend={start}
    >
      <TextField {...PROMPT} hint="Optional. Without it, the agent waits for your first message." />
      <FileField
        name="files"
        label="Files for the agent"
        hint="Optional. Images, logs, specifications: at most 10, 10 MiB each."
        onChoose={setFiles}
      />
      <AgentFields options={options ?? NO_OPTIONS} choice={choice} choose={choose} />
      <TextField name="name" label="Name" hint="Optional. It is shown in lists." />
      <TextField
        name="base_ref"
        label="Start from"
        hint="Optional. A branch, a tag or a commit. The session gets a branch of its own."
        placeholder={branch}
        initial={choice.base_ref}
        suggestions={options?.branches ?? []}
        mono
      />
    </Form>
  );
};

const NewSession = ({ data, me }: { readonly data: Shown; readonly me: Me | null }) => (
  <>
    <h2>New session</h2>
    {!isArchived(data.project) && me !== null && <StartForm {...data} person={me.user.id} />}
  </>
);

export const newSession = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, options] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      // Without them the form is still of use.
      orNull(request("GET /v1/projects/:pid/session-options", { params }), [404, 409, 503]),
    ]);
    return { project, options };
  },
  title: ({ project }) => `New session in ${project.name}`,
  head: headOf(null),
  Body: NewSession,
});
