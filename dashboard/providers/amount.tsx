/** The amount of a limit of spend: dollars or tokens. */
import { grouped } from "../elements/format.ts";
import { SelectField, TextField } from "../ui/form.tsx";

interface Amount {
  readonly unit: "usd" | "tokens";
  readonly amount: number;
}

/** `$5`, `$0.25` or `200,000 tokens`. */
export const amountWords = ({ unit, amount }: Amount): string => {
  if (unit === "tokens") return `${grouped(amount)} tokens`;
  if (Number.isInteger(amount)) return `$${grouped(amount)}`;
  return `$${amount.toFixed(amount < 0.1 ? 4 : 2)}`;
};

/** What is typed into `AmountFields`. The service says what is wrong with it. */
export const amountIn = ({ amount = "", unit }: Readonly<Record<string, string>>) => {
  const value = Number(amount.replaceAll(/[$,\s]/g, ""));
  return unit === "tokens" ? { tokens: value } : { usd: value };
};

const UNITS = [
  ["usd", "dollars"],
  ["tokens", "tokens"],
] as const;

export const AmountFields = ({ initial }: { readonly initial?: Amount }) => (
  <>
    <TextField
      name="amount"
      label="Limit"
      required
      {...(initial !== undefined && { initial: String(initial.amount) })}
    />
    <SelectField
      name="unit"
      label="In"
      options={UNITS}
      {...(initial !== undefined && { initial: initial.unit })}
    />
  </>
);
