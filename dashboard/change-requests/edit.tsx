/** The title and the text of a change request, and the form that changes them. */
import { useState } from "react";
import { request } from "../api/client.ts";
import { perform } from "../frame/app.ts";
import { Markdown } from "../conversation/text/markdown.tsx";
import { keep, readKept } from "../frame/kept.ts";
import { notice } from "../frame/notices.ts";
import { lackedRole } from "../frame/roles.ts";
import { Form, TextField } from "../ui/form.tsx";
import { Badge } from "../ui/parts.tsx";
import { type Change, paramsOf } from "./request.ts";

interface Texts {
  readonly title: string;
  readonly description: string;
}

const EditForm = ({
  change,
  name,
  onEnd,
}: {
  readonly change: Change;
  readonly name: string;
  readonly onEnd: () => void;
}) => {
  const [texts, setTexts] = useState<Texts>(
    () => readKept(name) ?? { title: change.title, description: change.description },
  );
  const write = (part: Partial<Texts>): void => {
    const next = { ...texts, ...part };
    keep(name, next);
    setTexts(next);
  };
  const end = (): void => {
    keep(name, null);
    onEnd();
  };
  const save = async (): Promise<void> => {
    await request("PATCH /v1/projects/:pid/change-requests/:number", {
      params: paramsOf(change),
      payload: texts,
    });
    notice("The change request was edited.");
    end();
  };
  return (
    <Form submit="Save" sending="Saving…" onSend={save}>
      <TextField
        name="title"
        label="Title"
        required
        value={texts.title}
        onWrite={(title) => write({ title })}
      />
      <TextField
        name="description"
        label="Description"
        hint="Markdown works."
        lines={8}
        value={texts.description}
        onWrite={(description) => write({ description })}
      />
      <p className="actions">
        <button type="button" className="plain" onClick={end}>
          Cancel
        </button>
      </p>
    </Form>
  );
};

/** The head of the page, with the description below it. */
export const Texts = ({ change }: { readonly change: Change }) => {
  const name = `edit ${change.id}`;
  const [isEdited, setEdited] = useState(() => readKept(name) !== null);
  const canEdit = lackedRole("edit-request") === null;
  const end = (): void => {
    setEdited(false);
    // The form had the focus.
    void perform(() => document.getElementById("main")?.focus({ preventScroll: true }));
  };
  return (
    <>
      <header className="head">
        <h1>
          {change.title} <Badge status={change.status} />
        </h1>
        {canEdit && !isEdited && (
          <p className="actions">
            <button type="button" onClick={() => setEdited(true)}>
              Edit
            </button>
          </p>
        )}
      </header>
      {isEdited ? (
        <EditForm change={change} name={name} onEnd={end} />
      ) : (
        change.description !== "" && <Markdown text={change.description} />
      )}
    </>
  );
};
