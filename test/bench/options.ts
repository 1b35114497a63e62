/** Reads an option of a benchmark that is a whole number from 1. @throws Error that names the option */
export const wholeFrom1 = (name: string, text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1`);
  return value;
};
