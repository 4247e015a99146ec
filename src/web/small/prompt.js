(function () {
  var button = document.getElementById("copy"), said = document.getElementById("said"), prompt = document.getElementById("prompt");
  function say(text) { said.textContent = text; }
  function select() {
    var range = document.createRange(), selection = window.getSelection();
    range.selectNodeContents(prompt);
    selection.removeAllRanges();
    selection.addRange(range);
  }
  // Without HTTPS there is no clipboard to write to: select the text, and copy it the old way if the browser lets us.
  function fallBack() {
    var copied = false;
    select();
    try { copied = document.execCommand("copy"); } catch (error) { copied = false; }
    say(copied ? button.dataset.copied : button.dataset.selected);
  }
  button.addEventListener("click", function () {
    if (window.isSecureContext && navigator.clipboard) {
      navigator.clipboard.writeText(prompt.textContent).then(function () { say(button.dataset.copied); }, fallBack);
    } else {
      fallBack();
    }
  });
  button.hidden = false;
})();
