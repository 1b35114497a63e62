/** What the reader hears of her own sessions outside the page: by this browser, by mail, and in her own chat. In the API, these are her `notices`. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { Act } from "../ui/act.tsx";
import { CheckField, Form, SelectField, TextField } from "../ui/form.tsx";
import { NotificationButton } from "../ui/notification-button.tsx";
import { Callout, Time } from "../ui/parts.tsx";
import { REASONS, testedWords, triedWords } from "./receivers.ts";

type Notices = Answer<"GET /v1/me/notices">;
type Mail = Notices["mail"];
type Chat = Notices["chat"];
type Place = "mail" | "chat";
type Kind = Mail["tells"][number];
type Typed = Readonly<Record<string, string>>;

export const ownQuery = queryOptions({
  queryKey: ["notices"],
  // A token of one project may not read them.
  queryFn: () => orNull(request("GET /v1/me/notices", {}), [403]),
});

const KINDS: readonly (readonly [Kind, label: string, hint: string])[] = [
  ["asked", "When I am asked", "An agent asks, its work cannot be saved, or a person asks for my review."],
  ["finished", "When my agent is done", "It has finished its turn, or failed."],
];
const CHATS: readonly (readonly [string, string])[] = [
  ["slack", "Slack, or a chat that takes its format"],
  ["discord", "Discord"],
];

const keep = (notices: Notices): void => {
  queries.setQueryData(ownQuery.queryKey, notices);
};

const tellsOf = (typed: Typed): readonly Kind[] =>
  KINDS.flatMap(([kind]) => (typed[kind] === undefined ? [] : [kind]));

const off = async (place: Place): Promise<void> => {
  await request("DELETE /v1/me/notices/:place", { params: { place } });
  await queries.invalidateQueries({ queryKey: ownQuery.queryKey });
};

/** Nothing chosen is off. */
const saveMail = async (typed: Typed, { status }: Mail): Promise<void> => {
  const tells = tellsOf(typed);
  if (tells.length > 0) keep(await request("PUT /v1/me/notices/mail", { payload: { tells } }));
  else if (status !== "off") await off("mail");
  notice(tells.length > 0 ? "You get mail. Send yourself a test." : "You get no mail.");
};

const saveChat = async (typed: Typed): Promise<void> => {
  const tells = tellsOf(typed);
  if (tells.length === 0) throw new Error("Choose what you are told.");
  const { format, url } = typed;
  const address = url === undefined ? {} : { url, format: format as NonNullable<Chat["format"]> };
  keep(await request("PUT /v1/me/notices/chat", { payload: { tells, ...address } }));
  notice(
    url === undefined ? "Your chat is told this from now on." : "Your chat is added. Send yourself a test.",
  );
};

const removeChat = async (): Promise<void> => {
  const sure = await ask({
    title: "Remove your chat?",
    text: "It hears nothing more, and its address is deleted here.",
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await off("chat");
  notice("Your chat is removed.");
};

const test = async (place: Place): Promise<void> => {
  notice("A test is sent. This takes up to 15 seconds.");
  notice(testedWords(await request("POST /v1/me/notices/:place/test", { params: { place } })));
};

const Kinds = ({ tells }: { readonly tells: readonly Kind[] }) =>
  KINDS.map(([kind, label, hint]) => (
    <CheckField key={kind} name={kind} label={label} hint={hint} isTicked={tells.includes(kind)} />
  ));

/** What became of the last notice, and why there are none any more. */
const Last = ({ state }: { readonly state: Mail | Chat }) => {
  const { last_delivery: last, disabled_reason: why } = state;
  return (
    <>
      {why !== null && (
        <Callout tone="bad">
          <p>{`Nothing is sent any more. ${REASONS[why] ?? why} Save to begin again.`}</p>
        </Callout>
      )}
      {last !== null && (
        <p className={last.status === "failed" ? "reason" : "quiet"}>
          {"Last notice: "}
          <Time at={last.last_try?.at ?? last.created_at} />
          {`, ${last.status}. `}
          {last.status !== "delivered" && last.last_try !== null && triedWords(last.last_try)}
        </p>
      )}
    </>
  );
};

const WITHOUT_MAIL = {
  not_set_up:
    "This service sends no mail. The people who run it can name a mail server in its settings (PLATFORM_SMTP_URL).",
  no_address:
    "No sign-in of yours has a verified address. Add a provider that has one under Browsers, and sign in with it.",
} as const;

const ByMail = ({ mail }: { readonly mail: Mail }) => (
  <Part title="By mail">
    {mail.unavailable === null ? (
      <>
        <p className="quiet">
          {"To "}
          <strong>{mail.address}</strong>
          {", the address of your last sign-in with a provider."}
        </p>
        <Last state={mail} />
        <Form
          key={mail.tells.join()}
          submit="Save"
          sending="Saving…"
          onSend={(typed) => saveMail(typed, mail)}
        >
          <Kinds tells={mail.tells} />
        </Form>
      </>
    ) : (
      <p className="quiet">{WITHOUT_MAIL[mail.unavailable]}</p>
    )}
    {mail.status !== "off" && (
      <p className="actions">
        {mail.unavailable === null && <Act label="Send a test" about="by mail" does={() => test("mail")} />}
        {mail.unavailable !== null && <Act label="Turn off" about="mail" does={() => off("mail")} />}
      </p>
    )}
  </Part>
);

const ChatAddress = () => (
  <>
    <SelectField name="format" label="Chat" options={CHATS} />
    <TextField
      name="url"
      label="Address"
      hint="The incoming webhook that your chat made for a channel of your own. Whoever knows it can write there, so it is stored encrypted and shown masked."
      type="url"
      required
      mono
      placeholder="https://hooks.slack.com/services/…"
    />
  </>
);

const InChat = ({ chat }: { readonly chat: Chat }) => (
  <Part title="In my own chat">
    {chat.url !== null && (
      <p className="quiet">
        {"To "}
        <code>{chat.url}</code>
      </p>
    )}
    <Last state={chat} />
    <Form
      key={`${chat.url ?? ""} ${chat.tells.join()}`}
      submit={chat.url === null ? "Add the chat" : "Save"}
      sending="Saving…"
      onSend={saveChat}
    >
      {chat.url === null && <ChatAddress />}
      <Kinds tells={chat.url === null ? ["asked", "finished"] : chat.tells} />
    </Form>
    {chat.url !== null && (
      <p className="actions">
        <Act label="Send a test" about="in the chat" does={() => test("chat")} />
        <Act label="Remove" about="the chat" does={removeChat} />
      </p>
    )}
  </Part>
);

const Part = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <div className="notice-place">
    <h3>{title}</h3>
    {children}
  </div>
);

export const OwnNotifications = () => {
  const { data } = useQuery(ownQuery);
  if (data === undefined || data === null) return null;
  return (
    <section>
      <h2>Notify me</h2>
      <p className="quiet">
        Of sessions that you started or wrote to, and of reviews that people ask of you. A notice has names
        and a link to this page. It has no prompt, no text of an agent and no secret.
      </p>
      <Part title="In this browser">
        <p className="actions">
          <NotificationButton />
        </p>
      </Part>
      <ByMail mail={data.mail} />
      <InChat chat={data.chat} />
    </section>
  );
};
