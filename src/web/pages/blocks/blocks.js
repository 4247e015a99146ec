// Copies a table as text. Without a secure context the text is selected and copied the old way.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("button[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.value);
  } catch {
    text.closest("details").open = true;
    text.select();
    document.execCommand("copy");
  }
  const label = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = label; }, 2000);
});
