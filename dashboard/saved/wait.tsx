/** Why an idle session is not stopped: its work could not be saved. */
import { counted } from "../elements/format.ts";
import { Time } from "../ui/parts.tsx";
import type { Session } from "../wire.d.ts";

export const SaveWait = ({ session: { unsaved } }: { readonly session: Pick<Session, "unsaved"> }) =>
  unsaved !== null && (
    <p>
      {"The first try to save it was "}
      <Time at={unsaved.since} />
      {`. The service has tried ${counted(unsaved.tries, "time")}, and tries again `}
      <Time at={unsaved.next_try_at} />. After 24 hours the session stops with what is saved then.
    </p>
  );
