/** The part of a card that denies what the agent asks for. */

interface Denial {
  /** Of the reason in the form. */
  readonly name: string;
  readonly typed?: string | undefined;
  /** Read aloud in place of the button's word. */
  readonly label?: string;
  readonly isBusy?: boolean;
}

export const Denial = ({ name, typed, label, isBusy = false }: Denial) => (
  <p className="actions with-words">
    <input
      type="text"
      name={name}
      dir="auto"
      defaultValue={typed}
      autoComplete="off"
      placeholder="Reason (optional)"
      aria-label="Reason for the agent (optional, sent with a denial)"
    />
    {/* The only button that submits: Enter in the reason must not allow anything. */}
    <button type="submit" aria-label={label} aria-disabled={isBusy}>
      Deny
    </button>
  </p>
);
